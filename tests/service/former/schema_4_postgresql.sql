CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  PRIMARY KEY (version_num)
);
CREATE TABLE attempts (
  key_hash VARCHAR(64) NOT NULL,
  n INTEGER NOT NULL,
  began_at VARCHAR(27) NOT NULL,
  last_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (key_hash)
);
CREATE INDEX ix_attempts_last_at ON attempts (last_at);
CREATE TABLE developers (
  id VARCHAR(36) NOT NULL,
  name TEXT NOT NULL,
  api_key_hash VARCHAR(64) NOT NULL,
  client_id VARCHAR(64) NOT NULL,
  client_secret_hash VARCHAR(64) NOT NULL,
  redirect_uris JSON NOT NULL,
  disabled BOOLEAN NOT NULL,
  token_epoch INTEGER DEFAULT '0' NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (api_key_hash),
  UNIQUE (client_id)
);
CREATE TABLE meta (
  name VARCHAR(64) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE users (
  id VARCHAR(36) NOT NULL,
  email VARCHAR(320) NOT NULL,
  password_hash TEXT NOT NULL,
  must_change_password BOOLEAN DEFAULT false NOT NULL,
  key_version INTEGER NOT NULL,
  disabled BOOLEAN NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (email)
);
CREATE TABLE authorization_codes (
  id VARCHAR(36) NOT NULL,
  code_hash VARCHAR(64) NOT NULL,
  developer_id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  redirect_uri TEXT,
  code_challenge VARCHAR(128),
  created_at VARCHAR(27) NOT NULL,
  expires_at VARCHAR(27) NOT NULL,
  used_at VARCHAR(27),
  PRIMARY KEY (id),
  UNIQUE (code_hash),
  FOREIGN KEY(developer_id) REFERENCES developers (id),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE INDEX ix_authorization_codes_expires_at ON authorization_codes (expires_at);
CREATE TABLE connections (
  user_id VARCHAR(36) NOT NULL,
  developer_id VARCHAR(36) NOT NULL,
  memory_key_hash VARCHAR(64) NOT NULL,
  generation INTEGER DEFAULT '1' NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  ended_at VARCHAR(27),
  PRIMARY KEY (user_id, developer_id),
  FOREIGN KEY(user_id) REFERENCES users (id),
  FOREIGN KEY(developer_id) REFERENCES developers (id),
  UNIQUE (memory_key_hash)
);
CREATE TABLE idempotency_keys (
  developer_id VARCHAR(36) NOT NULL,
  key_hash VARCHAR(64) NOT NULL,
  body_hash VARCHAR(64) NOT NULL,
  memory_id VARCHAR(36) NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (developer_id, key_hash),
  FOREIGN KEY(developer_id) REFERENCES developers (id)
);
CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);
CREATE TABLE memories (
  seq BIGSERIAL NOT NULL,
  id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  content TEXT NOT NULL,
  title TEXT,
  summary TEXT,
  tags TEXT NOT NULL,
  tag_ids TEXT NOT NULL,
  importance DOUBLE PRECISION,
  confidence DOUBLE PRECISION,
  source TEXT,
  created_at VARCHAR(27) NOT NULL,
  updated_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (seq),
  UNIQUE (id),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE INDEX memories_by_user ON memories (user_id, seq, importance);
CREATE TABLE sessions (
  token_hash VARCHAR(64) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  expires_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (token_hash),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);
CREATE TABLE tags (
  id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  color VARCHAR(7) NOT NULL,
  description TEXT NOT NULL,
  is_enabled BOOLEAN NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  updated_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (user_id, name),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE TABLE tombstones (
  memory_id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  developer_id VARCHAR(36) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  updated_at VARCHAR(27) NOT NULL,
  deleted_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (memory_id),
  FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
  FOREIGN KEY(developer_id) REFERENCES developers (id)
);
CREATE INDEX ix_tombstones_deleted_at ON tombstones (deleted_at);
CREATE INDEX ix_tombstones_user_id ON tombstones (user_id);
CREATE TABLE user_keys (
  user_id VARCHAR(36) NOT NULL,
  version INTEGER NOT NULL,
  wrapped_key BYTEA NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (user_id, version),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE TABLE access_requests (
  seq BIGSERIAL NOT NULL,
  id VARCHAR(36) NOT NULL,
  developer_id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  reason TEXT NOT NULL,
  status VARCHAR(16) NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  updated_at VARCHAR(27) NOT NULL,
  PRIMARY KEY (seq),
  FOREIGN KEY(user_id, developer_id) REFERENCES connections (user_id, developer_id),
  UNIQUE (id)
);
CREATE INDEX access_requests_by_developer ON access_requests (developer_id, seq);
CREATE INDEX access_requests_by_grant ON access_requests (developer_id, user_id, status);
CREATE INDEX access_requests_by_user ON access_requests (user_id, seq);
CREATE TABLE memory_tags (
  tag_id VARCHAR(36) NOT NULL,
  memory_seq BIGINT NOT NULL,
  PRIMARY KEY (tag_id, memory_seq),
  FOREIGN KEY(tag_id) REFERENCES tags (id),
  FOREIGN KEY(memory_seq) REFERENCES memories (seq) ON DELETE CASCADE
);
CREATE INDEX memory_tags_by_memory ON memory_tags (memory_seq);
CREATE TABLE user_tokens (
  token_hash VARCHAR(64) NOT NULL,
  kind VARCHAR(16) NOT NULL,
  code_id VARCHAR(36) NOT NULL,
  developer_id VARCHAR(36) NOT NULL,
  user_id VARCHAR(36) NOT NULL,
  created_at VARCHAR(27) NOT NULL,
  expires_at VARCHAR(27) NOT NULL,
  revoked_at VARCHAR(27),
  PRIMARY KEY (token_hash),
  FOREIGN KEY(code_id) REFERENCES authorization_codes (id),
  FOREIGN KEY(developer_id) REFERENCES developers (id),
  FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE INDEX ix_user_tokens_code_id ON user_tokens (code_id);
CREATE INDEX ix_user_tokens_expires_at ON user_tokens (expires_at);
INSERT INTO alembic_version (version_num) VALUES ('0004');
INSERT INTO developers (id, name, api_key_hash, client_id, client_secret_hash, redirect_uris, disabled, token_epoch, created_at) VALUES ('c1c45fe4-5aa4-478f-bc8f-77899d8e74b0', 'Notes', 'f7c5a2249e3ec5c0101ba56996f9c0901cb6b3d86b85b52247fad7c8f29ed294', 'mfc_b9ea47fb1bfd4838ba1e5ff689ee24e7', '0a57e465cbf87b0a8460ee56b0d6e39a5df7db4a2cbf45634fd29ec35b44a3d1', '["http://127.0.0.1/callback"]', false, 0, '2026-03-01T12:00:00.000000Z');
INSERT INTO meta (name, value) VALUES ('master_key', 'a5b601cceb26b5c0ed26d0356e270269');
INSERT INTO meta (name, value) VALUES ('schema_version', '4');
INSERT INTO users (id, email, password_hash, must_change_password, key_version, disabled, created_at) VALUES ('fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'ada@example.org', '$argon2id$v=19$m=8,t=1,p=1$xesbniIhH58IrzbSpfBGFA$txSM+ksnwqOeuwo/TcDRP1uB3vUqJ8LJF6FEGcaI3Ks', false, 1, false, '2026-03-01T12:00:00.000000Z');
INSERT INTO users (id, email, password_hash, must_change_password, key_version, disabled, created_at) VALUES ('26a7214a-1c61-4615-ac45-ba00f4e7fc23', 'bob@example.org', '$argon2id$v=19$m=8,t=1,p=1$h47o4pv5Q8/UwwNk9QEhyA$TUhFrdkHcfoImYq9YWz4MbVp/CZwOZ1YGrKaXDxkgXg', true, 1, false, '2026-03-01T12:00:00.000000Z');
INSERT INTO authorization_codes (id, code_hash, developer_id, user_id, redirect_uri, code_challenge, created_at, expires_at, used_at) VALUES ('edfc369b-f412-4a1e-a481-d04039f8a1cf', 'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', 'c1c45fe4-5aa4-478f-bc8f-77899d8e74b0', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', NULL, NULL, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:01:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO connections (user_id, developer_id, memory_key_hash, generation, created_at, ended_at) VALUES ('fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'c1c45fe4-5aa4-478f-bc8f-77899d8e74b0', '2fee8692deb09364f7e4a8bc5503fdaa18928c0c044168d1a9a56a075e8dc39b', 1, '2026-03-01T12:00:00.000000Z', NULL);
INSERT INTO memories (seq, id, user_id, content, title, summary, tags, tag_ids, importance, confidence, source, created_at, updated_at) VALUES (1, 'e29e3661-fa88-4bc7-a074-b0dfe8ed0b73', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'mf1.1.ueiP2KTRcUAQEo0I1l6SRTiNa/t+ZTEc8MXQcSG3w74FKLCPdQ==', 'Drinks', NULL, '["drinks","home"]', '["4a2398d8-d715-47f6-964d-8a4b6cf96d66","52e14dc2-d284-4a91-8996-a5217f24c0d9"]', NULL, NULL, NULL, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO memories (seq, id, user_id, content, title, summary, tags, tag_ids, importance, confidence, source, created_at, updated_at) VALUES (2, 'd275d9c5-01be-44d9-906d-7345641b1af4', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'mf1.1.4KoN6z25EqBAPnvqZJ8GQ92R1V9F7Z6/AovZY8IeK19LYZlk241R2Hs=', NULL, NULL, '[]', '[]', 0.5, NULL, NULL, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO sessions (token_hash, user_id, created_at, expires_at) VALUES ('5555555555555555555555555555555555555555555555555555555555555555', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', '2026-03-01T12:00:00.000000Z', '2026-03-02T00:00:00.000000Z');
INSERT INTO tags (id, user_id, name, color, description, is_enabled, created_at, updated_at) VALUES ('adf82bb0-0c32-40a0-a7ee-d3776212d5ce', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'stamps', '#6b7280', '', true, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO tags (id, user_id, name, color, description, is_enabled, created_at, updated_at) VALUES ('4a2398d8-d715-47f6-964d-8a4b6cf96d66', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'drinks', '#6b7280', '', true, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO tags (id, user_id, name, color, description, is_enabled, created_at, updated_at) VALUES ('52e14dc2-d284-4a91-8996-a5217f24c0d9', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'home', '#6b7280', '', true, '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO user_keys (user_id, version, wrapped_key, created_at) VALUES ('fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 1, '\xd6447bc012822231e768613b86722bf0ad1ab3f45243b946869302acb09be42f06cab5e0ec7c4142012709774e0b371e71b988e97b8e12d2d14be4e0', '2026-03-01T12:00:00.000000Z');
INSERT INTO user_keys (user_id, version, wrapped_key, created_at) VALUES ('26a7214a-1c61-4615-ac45-ba00f4e7fc23', 1, '\xbceb40daff1edc63e95aca0529ee042cf0aeea0c23bbf0f0066289f2b8fc3c2c408c2d07ac4d4758e575c9b7b5706b6ffc022deb0e8d57109c56bee4', '2026-03-01T12:00:00.000000Z');
INSERT INTO access_requests (seq, id, developer_id, user_id, reason, status, created_at, updated_at) VALUES (1, 'd5f99130-3562-418a-a713-2ea4ce871ff9', 'c1c45fe4-5aa4-478f-bc8f-77899d8e74b0', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', 'weekly review', 'approved', '2026-03-01T12:00:00.000000Z', '2026-03-01T12:00:00.000000Z');
INSERT INTO memory_tags (tag_id, memory_seq) VALUES ('4a2398d8-d715-47f6-964d-8a4b6cf96d66', 1);
INSERT INTO memory_tags (tag_id, memory_seq) VALUES ('52e14dc2-d284-4a91-8996-a5217f24c0d9', 1);
INSERT INTO user_tokens (token_hash, kind, code_id, developer_id, user_id, created_at, expires_at, revoked_at) VALUES ('77a527d5033135225024e972f967937e66fcd58743386dbc17b2663f9ec25cea', 'refresh', 'edfc369b-f412-4a1e-a481-d04039f8a1cf', 'c1c45fe4-5aa4-478f-bc8f-77899d8e74b0', 'fa45c3ec-a4c4-4c62-9637-dcdd1d90682f', '2026-03-01T12:00:00.000000Z', '2026-03-31T12:00:00.000000Z', NULL);
SELECT setval('memories_seq_seq', 10);
SELECT setval('access_requests_seq_seq', 10);
