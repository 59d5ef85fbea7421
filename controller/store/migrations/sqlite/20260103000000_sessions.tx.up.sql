CREATE TABLE IF NOT EXISTS idle_hosts (
  name TEXT PRIMARY KEY,
  since BIGINT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS wanted (
  resource TEXT NOT NULL,
  template TEXT NOT NULL,
  provider TEXT NOT NULL,
  demand TEXT NOT NULL,
  PRIMARY KEY (resource, template, provider)
);
--bun:split
CREATE TABLE IF NOT EXISTS demand (
  resource TEXT NOT NULL,
  provider TEXT NOT NULL,
  demand TEXT NOT NULL,
  PRIMARY KEY (resource, provider)
);
--bun:split
INSERT OR IGNORE INTO wanted SELECT resource, '', provider, demand FROM demand;
--bun:split
DROP TABLE demand;
--bun:split
CREATE TABLE IF NOT EXISTS reservations (
  job BIGINT PRIMARY KEY,
  reservation TEXT NOT NULL
);
