CREATE TABLE IF NOT EXISTS uses (
  resource TEXT NOT NULL,
  job BIGINT NOT NULL,
  units BIGINT NOT NULL,
  PRIMARY KEY (resource, job)
);
--bun:split
CREATE INDEX IF NOT EXISTS uses_job ON uses (job);
--bun:split
INSERT OR IGNORE INTO uses SELECT token.key, jobs.id, token.value
FROM jobs, json_each(jobs.job, '$.tokens') AS token WHERE jobs.state = 'running';
