BEGIN TRANSACTION;
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
INSERT INTO "access_requests" VALUES(1,'be8963cb-03eb-4821-8eff-c78513885362','6f04a3c4-6d26-48f3-aa45-2b60079a54d2','bede6d1c-63fd-4075-8877-9367ceae2ce6','weekly review','approved','2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
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
INSERT INTO "authorization_codes" VALUES('f109981c-600d-4b13-9718-b0382c245adc','eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee','6f04a3c4-6d26-48f3-aa45-2b60079a54d2','bede6d1c-63fd-4075-8877-9367ceae2ce6',NULL,NULL,'2026-03-01T12:00:00.000000Z','2026-03-01T12:01:00.000000Z','2026-03-01T12:00:00.000000Z');
CREATE TABLE connections (
	user_id VARCHAR(36) NOT NULL, 
	developer_id VARCHAR(36) NOT NULL, 
	memory_key_hash VARCHAR(64) NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (user_id, developer_id), 
	FOREIGN KEY(user_id) REFERENCES users (id), 
	FOREIGN KEY(developer_id) REFERENCES developers (id), 
	UNIQUE (memory_key_hash)
);
INSERT INTO "connections" VALUES('bede6d1c-63fd-4075-8877-9367ceae2ce6','6f04a3c4-6d26-48f3-aa45-2b60079a54d2','e519678cf7281a8ad2dd317ebb06cba720397c7d329180dfa0d2b7381cae10ff','2026-03-01T12:00:00.000000Z');
CREATE TABLE developers (
	id VARCHAR(36) NOT NULL, 
	name TEXT NOT NULL, 
	api_key_hash VARCHAR(64) NOT NULL, 
	client_id VARCHAR(64) NOT NULL, 
	client_secret_hash VARCHAR(64) NOT NULL, 
	redirect_uris JSON NOT NULL, 
	disabled BOOLEAN NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (api_key_hash), 
	UNIQUE (client_id)
);
INSERT INTO "developers" VALUES('6f04a3c4-6d26-48f3-aa45-2b60079a54d2','Notes','f7c5a2249e3ec5c0101ba56996f9c0901cb6b3d86b85b52247fad7c8f29ed294','mfc_8562d6642218481ba735d42cf3462d4b','0a57e465cbf87b0a8460ee56b0d6e39a5df7db4a2cbf45634fd29ec35b44a3d1','["http://127.0.0.1/callback"]',0,'2026-03-01T12:00:00.000000Z');
CREATE TABLE idempotency_keys (
	developer_id VARCHAR(36) NOT NULL, 
	key_hash VARCHAR(64) NOT NULL, 
	body_hash VARCHAR(64) NOT NULL, 
	memory_id VARCHAR(36) NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (developer_id, key_hash), 
	FOREIGN KEY(developer_id) REFERENCES developers (id)
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
INSERT INTO "memories" VALUES(1,'7e68655b-dc5b-4038-a8ee-170f1efe8c3c','bede6d1c-63fd-4075-8877-9367ceae2ce6','mf1.1.cv4uH0mhjYtjFjr9GpQpg8Eslz8s0sYoVaUjQJSO84Il+DxJFg==','Drinks',NULL,'["drinks","home"]','["eb85ae16-bbd2-42f1-b460-ef8736378d5a","40f799dc-44ef-4c3a-a366-d754276a60cf"]',NULL,NULL,NULL,'2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
INSERT INTO "memories" VALUES(2,'ded7eb1f-5822-4c10-b7b1-d8f5aec9ff83','bede6d1c-63fd-4075-8877-9367ceae2ce6','mf1.1.tbeqs6ofb6Zc2xdluMkirbRgKLSD2Kp09KsNwP7pLCPc2tkLUqsXBY0=',NULL,NULL,'[]','[]',0.5,NULL,NULL,'2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
CREATE TABLE memory_tags (
	tag_id VARCHAR(36) NOT NULL, 
	memory_seq INTEGER NOT NULL, 
	PRIMARY KEY (tag_id, memory_seq), 
	FOREIGN KEY(tag_id) REFERENCES tags (id), 
	FOREIGN KEY(memory_seq) REFERENCES memories (seq) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "memory_tags" VALUES('40f799dc-44ef-4c3a-a366-d754276a60cf',1);
INSERT INTO "memory_tags" VALUES('eb85ae16-bbd2-42f1-b460-ef8736378d5a',1);
CREATE TABLE meta (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('schema_version','2');
INSERT INTO "meta" VALUES('master_key','a5b601cceb26b5c0ed26d0356e270269');
CREATE TABLE sessions (
	token_hash VARCHAR(64) NOT NULL, 
	user_id VARCHAR(36) NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	expires_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (token_hash), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO "sessions" VALUES('5555555555555555555555555555555555555555555555555555555555555555','bede6d1c-63fd-4075-8877-9367ceae2ce6','2026-03-01T12:00:00.000000Z','2026-03-02T00:00:00.000000Z');
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
INSERT INTO "tags" VALUES('29e91e75-7469-470b-99ec-91e8f745e123','bede6d1c-63fd-4075-8877-9367ceae2ce6','stamps','#6b7280','',1,'2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
INSERT INTO "tags" VALUES('eb85ae16-bbd2-42f1-b460-ef8736378d5a','bede6d1c-63fd-4075-8877-9367ceae2ce6','drinks','#6b7280','',1,'2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
INSERT INTO "tags" VALUES('40f799dc-44ef-4c3a-a366-d754276a60cf','bede6d1c-63fd-4075-8877-9367ceae2ce6','home','#6b7280','',1,'2026-03-01T12:00:00.000000Z','2026-03-01T12:00:00.000000Z');
CREATE TABLE user_keys (
	user_id VARCHAR(36) NOT NULL, 
	version INTEGER NOT NULL, 
	wrapped_key BLOB NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (user_id, version), 
	FOREIGN KEY(user_id) REFERENCES users (id)
);
INSERT INTO "user_keys" VALUES('bede6d1c-63fd-4075-8877-9367ceae2ce6',1,X'7C2258AE56F22E09B4C868903D1BC4F80D2907602F7E40FE5E2F885AEE375B6DE25C90541CCE2C0D4073D5AB788C3FD348CE73533C29BF4C06B4423E','2026-03-01T12:00:00.000000Z');
INSERT INTO "user_keys" VALUES('91f26c49-6a27-4bf8-ab98-c78cc4ebd9a4',1,X'FE17F7AEA374F88B35936A533BBCE91F0AA18617946DD052CB346220E945BFD04275E37B3631477222C9FBD9017A7E8584C26BD35B05BEBBFFFB2722','2026-03-01T12:00:00.000000Z');
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
INSERT INTO "user_tokens" VALUES('77a527d5033135225024e972f967937e66fcd58743386dbc17b2663f9ec25cea','refresh','f109981c-600d-4b13-9718-b0382c245adc','6f04a3c4-6d26-48f3-aa45-2b60079a54d2','bede6d1c-63fd-4075-8877-9367ceae2ce6','2026-03-01T12:00:00.000000Z','2026-03-31T12:00:00.000000Z',NULL);
CREATE TABLE users (
	id VARCHAR(36) NOT NULL, 
	email VARCHAR(320) NOT NULL, 
	password_hash TEXT NOT NULL, 
	key_version INTEGER NOT NULL, 
	disabled BOOLEAN NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (email)
);
INSERT INTO "users" VALUES('bede6d1c-63fd-4075-8877-9367ceae2ce6','ada@example.org','$argon2id$v=19$m=8,t=1,p=1$Z8Df2Qd7xCtVlPFclXgRcA$Dj8qpgzbH1EPM9cGDbzohfzlJeItYXNSwxtXvwRtbj8',1,0,'2026-03-01T12:00:00.000000Z');
INSERT INTO "users" VALUES('91f26c49-6a27-4bf8-ab98-c78cc4ebd9a4','bob@example.org','$argon2id$v=19$m=8,t=1,p=1$FTs/jGaZqUyt9vB5pElGKw$5xiDn5l+4M7fv5AwTdIrLHHtXAPuXrEtda/3UmqPdlw',1,0,'2026-03-01T12:00:00.000000Z');
CREATE INDEX memories_by_user ON memories (user_id, seq, importance);
CREATE INDEX ix_idempotency_keys_created_at ON idempotency_keys (created_at);
CREATE INDEX ix_authorization_codes_expires_at ON authorization_codes (expires_at);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);
CREATE INDEX access_requests_by_grant ON access_requests (developer_id, user_id, status);
CREATE INDEX access_requests_by_user ON access_requests (user_id, seq);
CREATE INDEX memory_tags_by_memory ON memory_tags (memory_seq);
CREATE INDEX ix_user_tokens_expires_at ON user_tokens (expires_at);
CREATE INDEX ix_user_tokens_code_id ON user_tokens (code_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('memories',2);
COMMIT;
