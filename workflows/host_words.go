package workflows

import (
	"fmt"

	"xce.internal/elastic/cluster"
)

// state is the host's state for people: the ledger's, and finer where the story knows more.
func (h *Host) state() string {
	switch {
	case h.Chapter == GivingBack || h.Chapter == Verifying:
		return string(cluster.HostLeaving)
	case h.Row.State == "":
		return string(cluster.HostRequested)
	case h.Row.State.Here() && h.Row.Health != cluster.Well:
		return string(h.Row.Health)
	case h.Row.State == cluster.HostJoined && h.Row.Keep != nil:
		return "kept"
	}
	return string(h.Row.State)
}

// machines is how many machines the provider has for the host.
func (h *Host) machines() int64 {
	if h.Chapter == Closed {
		return 0
	}
	return int64(len(h.Machines))
}

const stamp = "2006-01-02 15:04:05 UTC"

// show tells people how the host stands.
func (h *Host) show(env HostEnv, waitsFor string, until cluster.Time) {
	h.WaitsFor, h.Until = waitsFor, until
	env.Show(h.summary)
}

// summary puts into words how the host stands.
func (h *Host) summary() Summary {
	r, waitsFor, until := h.Row, h.WaitsFor, h.Until
	title := fmt.Sprintf("%s: a host of %s from %s, %s", h.Request.ID, h.Request.Template, h.Request.Provider, h.state())
	wait := "Waits for " + waitsFor
	if until > 0 {
		wait += ", until " + until.Std().Format(stamp)
	}
	details := []string{fmt.Sprintf("**%s**", title), "", wait + ".", ""}
	if r.Instance != "" {
		details = append(details, "| machine | name | cpus | memory | price |", "|---|---|---|---|---|",
			fmt.Sprintf("| %s | %s | %d | %d MB | %s |", r.Instance, r.Name, r.CPUs, r.MemoryMB, r.Price), "")
	}
	details = append(details, fmt.Sprintf("Made because %s.", h.Request.Reason))
	if r.Why != "" && r.Why != h.Request.Reason {
		details = append(details, "", "Last: "+r.Why+".")
	}
	if r.Drain != nil {
		details = append(details, "", fmt.Sprintf("Drains since %s, by %s: %s.", r.Drain.Since, r.Drain.By, r.Drain.Why))
	}
	if r.Keep != nil {
		details = append(details, "", fmt.Sprintf("Kept by %s since %s: %s.", r.Keep.By, r.Keep.Since, r.Keep.Why))
	}
	if h.Trouble != "" {
		details = append(details, "", fmt.Sprintf("Trouble after %d tries: %s", h.Tries, h.Trouble))
	}
	return Summary{State: h.state(), Units: h.machines(), Waits: waitsFor, Title: title, Details: details}
}
