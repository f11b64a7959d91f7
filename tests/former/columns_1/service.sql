BEGIN TRANSACTION;
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
INSERT INTO "access_counts" VALUES('0df78c0e-9a5e-44ce-afae-e982d17df46b','2026-11-24','988cf90a-ba3e-4f5e-b379-d9b5f45a7e08',41,0,0,1);
CREATE TABLE access_requests (
	seq INTEGER NOT NULL, 
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
INSERT INTO "access_requests" VALUES(1,'c53c7ef8-1390-4d55-a1bc-3c89f7be78fc','988cf90a-ba3e-4f5e-b379-d9b5f45a7e08','0df78c0e-9a5e-44ce-afae-e982d17df46b','files of this version','approved','2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE attempts (
	key_hash VARCHAR(64) NOT NULL, 
	n INTEGER NOT NULL, 
	began_at VARCHAR(27) NOT NULL, 
	last_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (key_hash)
);
INSERT INTO "attempts" VALUES('3ac8a1f091e6790291aca8cd0bf7e307625757416bb1dc196e9f1d978731e277',1,'2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
INSERT INTO "attempts" VALUES('6ac9e56d0b3bdb357b57ccf89b67fc41ab619c0712f64208391a32f2ac8053b2',1,'2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
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
INSERT INTO "connections" VALUES('0df78c0e-9a5e-44ce-afae-e982d17df46b','988cf90a-ba3e-4f5e-b379-d9b5f45a7e08','dd857bf39387d0435e0843d36e167f9048264067bac0d9ba15ad4ceb72ecb80b',1,'2026-11-24T02:00:00.123456Z',NULL);
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
INSERT INTO "developers" VALUES('988cf90a-ba3e-4f5e-b379-d9b5f45a7e08','My application','d2885166291581a42a8b7f7f1043581c5e883adaf0b66f65d66eb1061376b24d','mfc_8572e5c9129642f18e3de3dbf2017e53','2ab3ad4d14fd972e854ca1eeb5f3011d1327620c316092b0176cf238a1502d94','["http://127.0.0.1/callback"]',0,0,'2026-11-24T02:00:00.123456Z');
CREATE TABLE erasures (
	digest VARCHAR(64) NOT NULL, 
	erased_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (digest)
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
CREATE TABLE imports (
	id VARCHAR(36) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	file_digest VARCHAR(64) NOT NULL, 
	started_at VARCHAR(27) NOT NULL, 
	finished_at VARCHAR(27), 
	PRIMARY KEY (id), 
	FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE memories (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(36) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	content TEXT NOT NULL, 
	title TEXT, 
	summary TEXT, 
	tags TEXT NOT NULL, 
	tag_ids TEXT NOT NULL, 
	importance DOUBLE, 
	confidence DOUBLE, 
	source TEXT, 
	created_at VARCHAR(27) NOT NULL, 
	updated_at VARCHAR(27) NOT NULL, 
	UNIQUE (id), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO "memories" VALUES(2,'35ec1b0d-a371-4374-be0b-7c392c7cc8e4','0df78c0e-9a5e-44ce-afae-e982d17df46b','mf1.1.xmld5p8Sr5SXTwKVfHNTxyilRYgweXn7dGyxG4UaIt2bjZpQ2PLA9varYZ+KPmbl0rzeqfuT7LDMvow=',NULL,'=home','[]','[]',NULL,NULL,'chat','2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
INSERT INTO "memories" VALUES(3,'d4597dd2-8e75-4065-bfaf-d1c3bfc1fb59','0df78c0e-9a5e-44ce-afae-e982d17df46b','mf1.1.Nosbi9M9Hs6pfre+jyQkqulKkoYWoS60y6RggiiFAGfE+Mylot5d25qyjylQo9tkQ6fJXA==','',NULL,'[]','[]',NULL,0.25,'mail','2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
INSERT INTO "memories" VALUES(4,'b3d0bba2-c144-4a76-b426-4d4ac3665807','0df78c0e-9a5e-44ce-afae-e982d17df46b','mf1.1.iHRurCu05PIUQedZ7vgGHR3UhRnvtwuGz5B5jRzFAvEeyZruthg=',NULL,NULL,'[]','[]',NULL,NULL,NULL,'2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
CREATE TABLE memory_tags (
	tag_id VARCHAR(36) NOT NULL, 
	memory_seq INTEGER NOT NULL, 
	PRIMARY KEY (tag_id, memory_seq), 
	FOREIGN KEY(tag_id) REFERENCES tags (id), 
	FOREIGN KEY(memory_seq) REFERENCES memories (seq) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE meta (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('schema_version','4');
INSERT INTO "meta" VALUES('master_key','a5b601cceb26b5c0ed26d0356e270269');
CREATE TABLE sessions (
	token_hash VARCHAR(64) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	expires_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (token_hash), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
CREATE TABLE tags (
	id VARCHAR(36) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	name TEXT NOT NULL, 
	color VARCHAR(7) NOT NULL, 
	description TEXT NOT NULL, 
	is_enabled BOOLEAN NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	updated_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (user_id, name), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO "tags" VALUES('a7f3c5a5-03d0-4a31-be58-72aaf6228cb1','0df78c0e-9a5e-44ce-afae-e982d17df46b','drinks','#6b7280','',1,'2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
INSERT INTO "tags" VALUES('84cd906c-e9cb-4219-9f64-e619de6575e2','0df78c0e-9a5e-44ce-afae-e982d17df46b','home','#6b7280','',1,'2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
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
INSERT INTO "tombstones" VALUES('24b67113-4fd0-414a-ba8b-b377dae8331e','0df78c0e-9a5e-44ce-afae-e982d17df46b','988cf90a-ba3e-4f5e-b379-d9b5f45a7e08','f5a5d04055c588bce73f1d003802c29bb1346e60e69cb9441a20e5d38a4dd303','2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z','2026-11-24T02:00:00.123456Z');
CREATE TABLE user_keys (
	user_id VARCHAR(36) NOT NULL, 
	version INTEGER NOT NULL, 
	wrapped_key BLOB NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (user_id, version), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO "user_keys" VALUES('0df78c0e-9a5e-44ce-afae-e982d17df46b',1,X'14E512EDEF84A2BA38714D422265E7CF4459DC9C04804D19E78EDA1D0D5005F452878FA3840CC8D0F017EBABE70957B7833C284BC702081F3788AD01','2026-11-24T02:00:00.123456Z');
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
CREATE TABLE users (
	id VARCHAR(36) NOT NULL, 
	email VARCHAR(320) NOT NULL, 
	password_hash TEXT NOT NULL, 
	must_change_password BOOLEAN DEFAULT 0 NOT NULL, 
	key_version INTEGER NOT NULL, 
	disabled BOOLEAN NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (email)
);
INSERT INTO "users" VALUES('0df78c0e-9a5e-44ce-afae-e982d17df46b','ada@example.org','$argon2id$v=19$m=65536,t=3,p=4$NmxaGVqxJBNnaX3YTyt9Zg$aRfqKNFSyQtjjRSg++dTO5iMCDxwUcGrgxNETIaKQ6Y',0,1,0,'2026-11-24T02:00:00.123456Z');
CREATE INDEX ix_attempts_last_at ON attempts (last_at);
CREATE INDEX memories_by_user ON memories (user_id, seq, importance);
CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);
CREATE INDEX ix_tombstones_user_id ON tombstones (user_id);
CREATE INDEX ix_tombstones_deleted_at ON tombstones (deleted_at);
CREATE INDEX ix_imports_user_id ON imports (user_id);
CREATE INDEX ix_authorization_codes_expires_at ON authorization_codes (expires_at);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);
CREATE INDEX access_requests_by_grant ON access_requests (developer_id, user_id, status);
CREATE INDEX access_requests_by_user ON access_requests (user_id, seq);
CREATE INDEX access_requests_by_developer ON access_requests (developer_id, seq);
CREATE INDEX memory_tags_by_memory ON memory_tags (memory_seq);
CREATE INDEX ix_imported_memories_import_id ON imported_memories (import_id);
CREATE INDEX ix_user_tokens_expires_at ON user_tokens (expires_at);
CREATE INDEX ix_user_tokens_code_id ON user_tokens (code_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('memories',4);
COMMIT;
