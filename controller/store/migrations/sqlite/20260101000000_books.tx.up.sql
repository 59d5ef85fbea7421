CREATE TABLE IF NOT EXISTS resources (
  name TEXT PRIMARY KEY,
  configured_owned BIGINT NOT NULL,
  resource TEXT NOT NULL,
  idle TEXT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS loans (
  id TEXT PRIMARY KEY,
  resource TEXT NOT NULL,
  provider TEXT NOT NULL,
  state TEXT NOT NULL,
  open BOOLEAN NOT NULL,
  loan TEXT NOT NULL
);
--bun:split
CREATE INDEX IF NOT EXISTS loans_open ON loans (open, resource);
--bun:split
CREATE TABLE IF NOT EXISTS lendings (
  id TEXT PRIMARY KEY,
  resource TEXT NOT NULL,
  lending TEXT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS offers (
  provider TEXT NOT NULL,
  resource TEXT NOT NULL,
  offer TEXT NOT NULL,
  PRIMARY KEY (provider, resource)
);
--bun:split
CREATE TABLE IF NOT EXISTS observations (
  provider TEXT NOT NULL,
  resource TEXT NOT NULL,
  observation TEXT NOT NULL,
  PRIMARY KEY (provider, resource)
);
--bun:split
CREATE TABLE IF NOT EXISTS demand (
  resource TEXT NOT NULL,
  provider TEXT NOT NULL,
  demand TEXT NOT NULL,
  PRIMARY KEY (resource, provider)
);
--bun:split
CREATE TABLE IF NOT EXISTS hosts (
  name TEXT PRIMARY KEY,
  assigned BIGINT NOT NULL,
  host TEXT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL,
  host TEXT NOT NULL,
  job TEXT NOT NULL
);
--bun:split
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, host);
--bun:split
CREATE TABLE IF NOT EXISTS changes (
  revision INTEGER PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  why TEXT NOT NULL,
  resource TEXT NOT NULL,
  total_before BIGINT NOT NULL,
  total_after BIGINT NOT NULL,
  before TEXT,
  after TEXT
);
