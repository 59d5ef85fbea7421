package workflows

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
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
	wait := "Waits for " + plain.Markdown(waitsFor)
	if until > 0 {
		wait += ", until " + until.Std().Format(stamp)
	}
	details := []string{fmt.Sprintf("**%s**", plain.Markdown(title)), "", wait + ".", ""}
	if r.Instance != "" {
		details = append(details, "| machine | name | cpus | memory | price |", "|---|---|---|---|---|",
			fmt.Sprintf("| %s | %s | %d | %d MB | %s |", plain.Markdown(r.Instance), plain.Markdown(r.Name), r.CPUs, r.MemoryMB, r.Price), "")
	}
	details = append(details, fmt.Sprintf("Made because %s.", plain.Markdown(h.Request.Reason)))
	if r.Why != "" && r.Why != h.Request.Reason {
		details = append(details, "", "Last: "+plain.Markdown(r.Why)+".")
	}
	if r.Drain != nil {
		details = append(details, "", fmt.Sprintf("Drains since %s, by %s: %s.", r.Drain.Since, plain.Markdown(r.Drain.By), plain.Markdown(r.Drain.Why)))
	}
	if r.Keep != nil {
		details = append(details, "", fmt.Sprintf("Kept by %s since %s: %s.", plain.Markdown(r.Keep.By), r.Keep.Since, plain.Markdown(r.Keep.Why)))
	}
	if h.Trouble != "" {
		details = append(details, "", fmt.Sprintf("Trouble after %d tries: %s", h.Tries, plain.Markdown(h.Trouble)))
	}
	return Summary{State: h.state(), Units: h.machines(), Waits: waitsFor, Title: title, Details: details}
}
