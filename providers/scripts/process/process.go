package process

// Process is one process of this machine, and never another that got its number later.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // as the kernel counts since it booted
	Boot  string `json:"boot"`  // which boot of the machine that was
}
