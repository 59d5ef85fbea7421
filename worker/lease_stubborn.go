//go:build stubborn

package worker

// lose and past let a provisioner act on although its lease is over. A build for
// tests only: it shows that the controller's fence alone keeps its changes out.
func (h *held) lose() {}

func (h *held) past() bool { return false }
