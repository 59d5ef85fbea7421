CREATE TABLE IF NOT EXISTS resources (
  name TEXT COLLATE "C" PRIMARY KEY,
  configured_owned BIGINT NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  idle TEXT COLLATE "C" NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS loans (
  id TEXT COLLATE "C" PRIMARY KEY,
  resource TEXT COLLATE "C" NOT NULL,
  provider TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  open BOOLEAN NOT NULL,
  loan TEXT COLLATE "C" NOT NULL
);
--bun:split
CREATE INDEX IF NOT EXISTS loans_open ON loans (open, resource);
--bun:split
CREATE TABLE IF NOT EXISTS lendings (
  id TEXT COLLATE "C" PRIMARY KEY,
  resource TEXT COLLATE "C" NOT NULL,
  lending TEXT COLLATE "C" NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS offers (
  provider TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  offer TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (provider, resource)
);
--bun:split
CREATE TABLE IF NOT EXISTS observations (
  provider TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  observation TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (provider, resource)
);
--bun:split
CREATE TABLE IF NOT EXISTS hosts (
  name TEXT COLLATE "C" PRIMARY KEY,
  assigned BIGINT NOT NULL,
  host TEXT COLLATE "C" NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS jobs (
  id BIGINT PRIMARY KEY,
  state TEXT COLLATE "C" NOT NULL,
  host TEXT COLLATE "C" NOT NULL,
  job TEXT COLLATE "C" NOT NULL
);
--bun:split
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, host);
--bun:split
CREATE TABLE IF NOT EXISTS changes (
  revision BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  why TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  total_before BIGINT NOT NULL,
  total_after BIGINT NOT NULL,
  before TEXT COLLATE "C",
  after TEXT COLLATE "C"
);
--bun:split
CREATE TABLE IF NOT EXISTS uses (
  resource TEXT COLLATE "C" NOT NULL,
  job BIGINT NOT NULL,
  units BIGINT NOT NULL,
  PRIMARY KEY (resource, job)
);
--bun:split
CREATE INDEX IF NOT EXISTS uses_job ON uses (job);
--bun:split
CREATE TABLE IF NOT EXISTS idle_hosts (
  name TEXT COLLATE "C" PRIMARY KEY,
  since BIGINT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS wanted (
  resource TEXT COLLATE "C" NOT NULL,
  template TEXT COLLATE "C" NOT NULL,
  provider TEXT COLLATE "C" NOT NULL,
  demand TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (resource, template, provider)
);
--bun:split
CREATE TABLE IF NOT EXISTS reservations (
  job BIGINT PRIMARY KEY,
  reservation TEXT COLLATE "C" NOT NULL
);
