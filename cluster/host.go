package cluster

// Host is a machine that has joined the cluster and runs jobs.
type Host struct {
	Name string `json:"name"`
	Capacity
	// ID and Template are those of an elastic host; empty where the cluster owns it.
	ID       string `json:"id,omitempty"`
	Template string `json:"template,omitempty"`
	Joined   Time   `json:"joined"`
	LastSeen Time   `json:"last_seen"`
	// Instance is that of the agent that joined.
	Instance string `json:"instance,omitempty"`
	// Up is false while the host has not been heard of for too long: it keeps
	// its jobs, and gets no new ones.
	Up bool `json:"up"`
	// Closed says why an elastic host takes no new jobs; empty where it does.
	Closed string `json:"closed,omitempty"`
	// Health is that of an elastic host as its workflow was told last.
	Health Health `json:"health,omitempty"`
}
