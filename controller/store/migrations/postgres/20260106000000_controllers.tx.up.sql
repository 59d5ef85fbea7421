-- The one row of turn counts the transactions that wrote anything.
CREATE TABLE IF NOT EXISTS turn (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  seq BIGINT NOT NULL,
  freed BIGINT NOT NULL,
  mark TEXT COLLATE "C" NOT NULL,
  cluster TEXT COLLATE "C" NOT NULL
);
--bun:split
INSERT INTO turn VALUES (1, 0, 0, '', '') ON CONFLICT DO NOTHING;
--bun:split
CREATE TABLE IF NOT EXISTS touched (
  seq BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (seq, kind, key)
);
--bun:split
CREATE TABLE IF NOT EXISTS lead (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  instance TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  until BIGINT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS controllers (
  instance TEXT COLLATE "C" PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  release TEXT COLLATE "C" NOT NULL,
  since BIGINT NOT NULL,
  seen BIGINT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS heard (
  host TEXT COLLATE "C" PRIMARY KEY,
  at BIGINT NOT NULL
);
--bun:split
CREATE TABLE IF NOT EXISTS last_session (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  at BIGINT NOT NULL,
  session TEXT COLLATE "C" NOT NULL
);
