package config

// Temporal says where Temporal is and how it is reached. What is not said here
// comes from TEMPORAL_ variables and profiles, as Temporal's own tools take them.
type Temporal struct {
	Address   string      `json:"address"`
	Namespace string      `json:"namespace"`
	TLS       TemporalTLS `json:"tls"`
	// APIKeyFile is a file with the key, which only its owner can read.
	APIKeyFile string `json:"api_key_file"`
	Codec      Codec  `json:"codec"`
	// Versioning has Temporal route workflows by the program's build, so that a new
	// one is tried on a part of them first.
	Versioning bool `json:"versioning"`
}

// TemporalTLS names the PEM files of a client of Temporal. Any of them turns TLS on.
type TemporalTLS struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"server_name"`
}

// Codec says how payloads are encrypted.
type Codec struct {
	// Keys is a file of keys, which only its owner can read; empty where nothing is encrypted.
	Keys string `json:"keys"`
}
