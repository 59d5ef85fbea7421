CREATE TABLE IF NOT EXISTS leases (
  provider TEXT PRIMARY KEY,
  lease TEXT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS provisioners (
  name TEXT PRIMARY KEY,
  provisioner TEXT NOT NULL
);
