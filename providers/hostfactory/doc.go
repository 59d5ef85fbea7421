// Package hostfactory lets plug-ins of the LSF resource connector and of Symphony's HostFactory provide hosts,
// as they are: five scripts, each called with -f FILE.
//
// An [Adapter] answers the verbs of the provider contract from what the scripts say and from records of its
// own, for plug-ins know nothing of our request ids. The records are one JSON file, replaced whole at each
// step; a request is written down before requestMachines is run, and what came of it after. Calls of one
// plug-in take turns, also between processes that share the file.
//
// # What is believed
//
// Answers are read leniently: as JSON, or else as the JSON values or Python literals that stand in the text.
// What cannot be read is unknown and kept word for word; it is neither success nor failure. The result of
// each machine decides, never the status of its request nor the text of its own status. A machine is granted
// once its result is succeed and it has a name; machines are known by their id, or by name where they have
// none. A request comes to nothing when the plug-in says so repeatedly and nothing is still executing, when
// nothing has changed for the time to settle after it said that it is done, or when no host could join any
// more. An error of the plug-in ends nothing.
//
// A machine is returned with a call of its own, by name and id, and counts as returned once the plug-in no
// longer shows it: in one answer on its request where the return was said to be done, in two otherwise.
// Until then the return is pending, and repeated while the machine is shown. Machines beyond what was asked
// for, or that come after nobody waits for them, go back at once, without being asked for.
//
// Since some plug-ins end every machine that is missing from the list that getReturnRequests is given, it
// gets the list of all machines that may exist, or is not called: not while a request cannot be looked at,
// not with an empty list while something is open, and not without records.
//
// # What cannot be known
//
// A requestMachines call that broke off, or whose answer cannot be read, may have made a machine. The
// contract has no way to ask: there is no id to ask with, and no inventory. Such a request is unknown,
// counts against headroom, is never put again and never listed. It is found again if the plug-in tells
// unasked of a request that began later, or if the caller names the machine when it returns the request.
// Given up, it stays pending until no host could join with its token any more. It counts for the time to
// watch, and is then let go: if there was a machine and the plug-in does not end strays by itself, it must
// be found by hand. This is the one way in which a machine
// can be lost, with three lesser ones: a machine that is listed with neither id nor name, one that appears
// after the time to watch, and one of which the plug-in says three times that its return is done, while it
// shows it and while it runs. Some plug-ins show machines for ever, so that must be taken for an end.
//
// # How hosts join
//
// With the flavour lsf, what a host needs to join is in userData, as XCE_HOST, XCE_CONTROLLER,
// XCE_JOIN_TOKEN, XCE_JOIN_DEADLINE, and XCE_CA (a PEM file in base64). With the flavour symphony nothing but the
// template can be told: there a machine must bring its own certificate, for the role host and under the
// name that the plug-in gives it.
package hostfactory
