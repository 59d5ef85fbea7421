package cluster

// Host is a machine that has joined the cluster and runs jobs.
type Host struct {
	Name     string `json:"name"`
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb"`
	// Countables are what jobs can take beside cpus and memory, such as gpus.
	Countables map[string]int64 `json:"countables,omitempty"`
	// Features are what constraints of jobs ask for, such as "avx512"; an
	// attribute k with the value v counts as the feature "k=v".
	Features   []string          `json:"features,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Joined     Time              `json:"joined"`
	LastSeen   Time              `json:"last_seen"`
	// Instance is that of the agent that joined.
	Instance string `json:"instance,omitempty"`
	// Up is false while the host has not been heard of for too long: it keeps
	// its jobs, and gets no new ones.
	Up bool `json:"up"`
}
