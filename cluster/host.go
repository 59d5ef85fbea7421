package cluster

// Host is a machine that has joined the cluster and runs jobs.
type Host struct {
	Name string `json:"name"`
	Capacity
	Joined   Time `json:"joined"`
	LastSeen Time `json:"last_seen"`
	// Instance is that of the agent that joined.
	Instance string `json:"instance,omitempty"`
	// Up is false while the host has not been heard of for too long: it keeps
	// its jobs, and gets no new ones.
	Up bool `json:"up"`
}
