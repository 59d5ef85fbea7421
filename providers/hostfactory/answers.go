package hostfactory

import (
	"regexp"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// Results of one machine, as plug-ins say them. What they mean depends on whether the machine was asked
// for or given back: succeed is done, fail is not done, executing is not yet.
const (
	succeed   = "succeed"
	fail      = "fail"
	executing = "executing"
)

// Statuses of one request.
const (
	running           = "running"
	complete          = "complete"
	completeWithError = "complete_with_error"
)

// machineEntry is one machine in an answer. One of id and name is there.
type machineEntry struct {
	id, name string
	result   string // empty where it is none of the three
	launched cluster.Time
	message  string
}

// requestEntry is how one request stands in an answer.
type requestEntry struct {
	id       string
	status   string
	message  string
	machines []machineEntry
	nameless int  // machines that cannot be told apart: neither id nor name
	told     bool // the answer says something of the request: a status, or machines
}

func (e requestEntry) terminal() bool { return e.status == complete || e.status == completeWithError }

// find answers the machine of an answer that is the same as one of ours.
func (e requestEntry) find(m *machine) (machineEntry, bool) {
	i := slices.IndexFunc(e.machines, m.is)
	if i < 0 {
		return machineEntry{}, false
	}
	return e.machines[i], true
}

// requestIDs are the ids that a plug-in gave to what was asked, each once. There may be several: a plug-in
// may print more than one document.
func requestIDs(docs []map[string]any) (ids []string) {
	for _, doc := range docs {
		id := identity(field(doc, "requestId"))
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// messages are the plug-in's own words on the whole call.
func messages(docs []map[string]any) string {
	var all []string
	for _, doc := range docs {
		for _, name := range []string{"message", "error"} {
			if words := text(field(doc, name)); words != "" && words != "true" && !slices.Contains(all, words) {
				all = append(all, words)
			}
		}
	}
	return strings.Join(all, "; ")
}

// readStatus reads an answer to getRequestStatus. Where one request alone was asked for and one alone is
// answered, that is the one, even if the plug-in left the id out.
func readStatus(docs []map[string]any, asked []string) (entries []requestEntry) {
	for _, doc := range docs {
		if has(doc, "requests") {
			for _, object := range elements(field(doc, "requests")) {
				entries = append(entries, readRequest(object))
			}
		} else if has(doc, "machines") || has(doc, "requestId") {
			entries = append(entries, readRequest(doc))
		}
	}
	entries = slices.DeleteFunc(entries, func(e requestEntry) bool { return !e.told })
	if len(entries) == 1 && entries[0].id == "" && len(asked) == 1 {
		entries[0].id = asked[0]
	}
	return slices.DeleteFunc(entries, func(e requestEntry) bool { return e.id == "" })
}

func readRequest(object map[string]any) requestEntry {
	entry := requestEntry{
		id: identity(field(object, "requestId")), status: readRequestStatus(object), message: text(field(object, "message")),
	}
	for _, machine := range elements(field(object, "machines")) {
		read := readMachine(machine)
		switch {
		case read.id == "" && read.name == "":
			entry.nameless++
		case !slices.ContainsFunc(entry.machines, read.same):
			entry.machines = append(entry.machines, read)
		}
	}
	entry.told = entry.status != "" || len(entry.machines) > 0 || entry.nameless > 0
	return entry
}

// readRequestStatus answers one of the three, or nothing for any other word: that settles nothing.
func readRequestStatus(object map[string]any) string {
	status := strings.ToLower(text(field(object, "status")))
	if slices.Contains([]string{running, complete, completeWithError}, status) {
		return status
	}
	return ""
}

func readMachine(object map[string]any) machineEntry {
	entry := machineEntry{
		id: identity(field(object, "machineId")), name: identity(field(object, "name", "machine")),
		launched: instant(field(object, "launchtime")), message: text(field(object, "message")),
	}
	result := strings.ToLower(text(field(object, "result")))
	if slices.Contains([]string{succeed, fail, executing}, result) {
		entry.result = result
	}
	return entry
}

// same tells whether two entries are of one machine: by id, or by name where one of them has no id.
func (e machineEntry) same(o machineEntry) bool {
	if e.id != "" && o.id != "" {
		return e.id == o.id
	}
	return e.name != "" && e.name == o.name
}

// wanted is a machine that the plug-in took back or wants back.
type wanted struct {
	machineEntry
	grace int64 // seconds
}

// readReturnRequests reads an answer to getReturnRequests; also in the envelope of getRequestStatus, which
// some plug-ins put around it. It is only an answer if some document has the key.
func readReturnRequests(docs []map[string]any) (all []wanted, answered bool) {
	for _, doc := range docs {
		answered = answered || has(doc, "requests")
		for _, object := range elements(field(doc, "requests")) {
			inner := elements(field(object, "machines"))
			if len(inner) == 0 {
				inner = []map[string]any{object}
			}
			for _, machine := range inner {
				all = append(all, readWanted(machine)...)
			}
		}
	}
	return all, answered
}

func readWanted(object map[string]any) []wanted {
	machine := machineEntry{id: identity(field(object, "machineId")), name: identity(field(object, "machine", "name"))}
	if machine.id == "" && machine.name == "" {
		return nil
	}
	grace, _ := integer(field(object, "gracePeriod"))
	return []wanted{{machine, min(max(grace, 0), mostSeconds)}}
}

const mostSeconds = 1_000_000_000

var errorCode = regexp.MustCompile(`Error Code:\s*([A-Za-z0-9_.-]+)`)

// codeIn answers the code by which plug-ins tell that a template should be left alone for a while.
func codeIn(message string) string {
	if found := errorCode.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}
