CREATE TABLE IF NOT EXISTS elastic_hosts (
  id TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  template TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  open BOOLEAN NOT NULL,
  intended BIGINT NOT NULL,
  host TEXT NOT NULL
);
--bun:split
CREATE INDEX IF NOT EXISTS elastic_hosts_open ON elastic_hosts (open, provider);
--bun:split
CREATE INDEX IF NOT EXISTS elastic_hosts_name ON elastic_hosts (name);
--bun:split
CREATE INDEX IF NOT EXISTS elastic_hosts_state ON elastic_hosts (state);
--bun:split
CREATE INDEX IF NOT EXISTS elastic_hosts_intended ON elastic_hosts (intended);
--bun:split
CREATE INDEX IF NOT EXISTS elastic_hosts_template ON elastic_hosts (template, provider);
--bun:split
CREATE TABLE IF NOT EXISTS templates (
  name TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  template TEXT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS quotas (
  provider TEXT NOT NULL,
  name TEXT NOT NULL,
  quota TEXT NOT NULL,
  PRIMARY KEY (provider, name)
);
--bun:split
CREATE TABLE IF NOT EXISTS join_tokens (
  host TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  key TEXT NOT NULL
);
