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
INSERT INTO developers (id, name, api_key_hash, client_id, client_secret_hash, redirect_uris, disabled, token_epoch, created_at) VALUES ('472b8e90-80d1-4cdc-8871-664d27c5a916', 'Notes', '0822f546e68b5eb483e52d8a229d38bad1f3b4b4d48235b109dc107835e0b6b2', 'mfc_6d68ac74a97c4acca680493d2b84625c', 'f77e938621a51f5464d837e5f5070f3b572add78415581b8461bb51861466c68', '["http://127.0.0.1/cb"]', false, 0, '2026-11-24T02:40:01.520359Z');
CREATE TABLE erasures (
	digest VARCHAR(64) NOT NULL,
	erased_at VARCHAR(27) NOT NULL,
	PRIMARY KEY (digest)
);
CREATE TABLE meta (
	name VARCHAR(64) NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO meta (name, value) VALUES ('schema_version', '4');
INSERT INTO meta (name, value) VALUES ('master_key', 'a5b601cceb26b5c0ed26d0356e270269');
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
INSERT INTO users (id, email, password_hash, must_change_password, key_version, disabled, created_at) VALUES ('5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', 'ada@example.org', '$argon2id$v=19$m=8,t=1,p=1$AucvFlrVeFywTO1ncgJfFg$RbPkepVPrWk8o+OzXiNJLdoc1lFJjUSEKnDN4cs84xU', false, 1, false, '2026-11-24T02:40:01.540401Z');
CREATE TABLE access_counts (
	user_id VARCHAR(36) NOT NULL,
	day VARCHAR(10) NOT NULL,
	developer_id VARCHAR(36) NOT NULL,
	reads INTEGER NOT NULL,
	creates INTEGER NOT NULL,
	patches INTEGER NOT NULL,
	deletes INTEGER NOT NULL,
	PRIMARY KEY (user_id, day, developer_id),
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
	FOREIGN KEY(developer_id) REFERENCES developers (id)
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
INSERT INTO connections (user_id, developer_id, memory_key_hash, generation, created_at, ended_at) VALUES ('5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', '472b8e90-80d1-4cdc-8871-664d27c5a916', 'fb5598db2abb6314a7827f9c63868c5160497c0245ceed5dd6cb67a7438a871a', 1, '2026-11-24T02:40:01.567580Z', NULL);
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
INSERT INTO idempotency_keys (developer_id, key_hash, body_hash, memory_id, created_at) VALUES ('472b8e90-80d1-4cdc-8871-664d27c5a916', '0000000000000000000000000000000000000000000000000000000000000000', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '9994ee84-1479-4a1c-b6e2-7839f0c2af2a', '2026-11-24T02:40:01.638356Z');
INSERT INTO idempotency_keys (developer_id, key_hash, body_hash, memory_id, created_at) VALUES ('472b8e90-80d1-4cdc-8871-664d27c5a916', '1111111111111111111111111111111111111111111111111111111111111111', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'fa0c2d3d-f412-42db-8380-d5661f9a7d4c', '2026-11-24T02:40:01.676708Z');
INSERT INTO idempotency_keys (developer_id, key_hash, body_hash, memory_id, created_at) VALUES ('472b8e90-80d1-4cdc-8871-664d27c5a916', '2222222222222222222222222222222222222222222222222222222222222222', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '770fe29c-c373-4011-b472-dbb827ec484f', '2026-11-24T02:40:01.677758Z');
CREATE TABLE imports (
	id VARCHAR(36) NOT NULL,
	user_id VARCHAR(36) NOT NULL,
	file_digest VARCHAR(64) NOT NULL,
	started_at VARCHAR(27) NOT NULL,
	finished_at VARCHAR(27),
	PRIMARY KEY (id),
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_imports_user_id ON imports (user_id);
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
INSERT INTO memories (seq, id, user_id, content, title, summary, tags, tag_ids, importance, confidence, source, created_at, updated_at) VALUES (1, '9994ee84-1479-4a1c-b6e2-7839f0c2af2a', '5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', 'mf1.1.11F/hkjs8/yRTx1dwIbQVmcjUooJg3r8ll2253/nlcxXTDkVaxlz', NULL, NULL, '["drinks"]', '["da8b21f7-559e-4650-bc05-3b5c76a02068"]', NULL, NULL, NULL, '2026-11-24T02:40:01.638356Z', '2026-11-24T02:40:01.638356Z');
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
INSERT INTO tags (id, user_id, name, color, description, is_enabled, created_at, updated_at) VALUES ('da8b21f7-559e-4650-bc05-3b5c76a02068', '5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', 'drinks', '#6b7280', '', true, '2026-11-24T02:40:01.638356Z', '2026-11-24T02:40:01.638356Z');
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
INSERT INTO tombstones (memory_id, user_id, developer_id, digest, created_at, updated_at, deleted_at) VALUES ('fa0c2d3d-f412-42db-8380-d5661f9a7d4c', '5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', '472b8e90-80d1-4cdc-8871-664d27c5a916', '4fb69946dbb7ef8d8cf1355062636661363087a13ed4e1ef15a8512e08bf0ace', '2026-11-24T02:40:01.676708Z', '2026-11-24T02:40:01.676708Z', '2026-11-24T02:40:01.678425Z');
CREATE TABLE user_keys (
	user_id VARCHAR(36) NOT NULL,
	version INTEGER NOT NULL,
	wrapped_key BYTEA NOT NULL,
	created_at VARCHAR(27) NOT NULL,
	PRIMARY KEY (user_id, version),
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO user_keys (user_id, version, wrapped_key, created_at) VALUES ('5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', 1, '\xc64b97916153ea86998eeaedbe20d51921888d351247a5a1dc2eddbceb111247fec2371f8b44f192b4b919180a95cd1d3334001ee571fdc06a470a77', '2026-11-24T02:40:01.540401Z');
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
INSERT INTO access_requests (seq, id, developer_id, user_id, reason, status, created_at, updated_at) VALUES (1, '842469a8-48db-4fe0-a4a8-94a9511bb65c', '472b8e90-80d1-4cdc-8871-664d27c5a916', '5c4dd3e9-c8c6-414b-a6d8-c9b6596536a7', 'to know Ada', 'approved', '2026-11-24T02:40:01.581996Z', '2026-11-24T02:40:01.602136Z');
CREATE TABLE imported_memories (
	user_id VARCHAR(36) NOT NULL,
	digest VARCHAR(64) NOT NULL,
	import_id VARCHAR(36) NOT NULL,
	memory_id VARCHAR(36) NOT NULL,
	updated_at VARCHAR(27) NOT NULL,
	PRIMARY KEY (user_id, digest),
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
	FOREIGN KEY(import_id) REFERENCES imports (id)
);
CREATE INDEX ix_imported_memories_import_id ON imported_memories (import_id);
CREATE TABLE memory_tags (
	tag_id VARCHAR(36) NOT NULL,
	memory_seq BIGINT NOT NULL,
	PRIMARY KEY (tag_id, memory_seq),
	FOREIGN KEY(tag_id) REFERENCES tags (id),
	FOREIGN KEY(memory_seq) REFERENCES memories (seq) ON DELETE CASCADE
);
CREATE INDEX memory_tags_by_memory ON memory_tags (memory_seq);
INSERT INTO memory_tags (tag_id, memory_seq) VALUES ('da8b21f7-559e-4650-bc05-3b5c76a02068', 1);
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
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	PRIMARY KEY (version_num)
);
INSERT INTO alembic_version (version_num) VALUES ('0005');
SELECT setval('memories_seq_seq', 100); SELECT setval('access_requests_seq_seq', 100);
