BEGIN TRANSACTION;
CREATE TABLE batch (
  id TEXT NOT NULL PRIMARY KEY,
  place INTEGER NOT NULL,
  state TEXT NOT NULL,
  rest TEXT NOT NULL
);
INSERT INTO "batch" VALUES('b1',0,'acknowledged','{"group":"g","size":2,"sessions":["s"],"completed_at":3.0,"lease":"l2","leased_until":9.5,"deliveries":2,"stale":["z"]}');
INSERT INTO "batch" VALUES('b2',1,'waiting','{"group":"g","size":1,"sessions":["ä"],"completed_at":4.0,"lease":null,"leased_until":null,"deliveries":0,"stale":[]}');
CREATE TABLE blob (
  hash TEXT NOT NULL PRIMARY KEY,
  body BLOB NOT NULL
);
CREATE TABLE call (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL REFERENCES session (id),
  parent TEXT REFERENCES turn (id),
  context BLOB NOT NULL,
  rest TEXT NOT NULL
);
INSERT INTO "call" VALUES(1,'c1','s',NULL,X'0000000001000000020000000300000004000000','{"after":null,"shared":0,"text_chars":0,"text_hash":"","inert":false,"messages":[{"role":"user","content":"hello","reasoning":null,"tool_calls":[],"tool_call_id":null,"name":null}],"tools_hash":"","arguments_hash":"","protocol":"chat","model":"","sampling":{"temperature":1.0,"top_p":1.0,"top_k":0,"min_p":0.0,"presence_penalty":0.0,"frequency_penalty":0.0,"repetition_penalty":1.0,"seed":null,"max_tokens":16,"min_tokens":0,"stop":[],"stop_token_ids":[],"ignore_eos":false,"logit_bias":{},"guide":null},"own_stops":[],"n":0,"request_id":"request-c1","body_hash":"","idempotency_key":null,"template_hash":"","tokenizer_hash":"","created_at":1.5,"first_token_at":null,"finished_at":0.0,"fork":null,"notes":[],"labels":{},"cached_tokens":null,"constrained":false,"instructed":false}');
INSERT INTO "call" VALUES(2,'c2','s','c1.1',X'0000000001000000020000000300000004000000','{"after":"c1.1","shared":0,"text_chars":6,"text_hash":"","inert":false,"messages":[{"role":"user","content":"hello","reasoning":null,"tool_calls":[],"tool_call_id":null,"name":null}],"tools_hash":"","arguments_hash":"","protocol":"chat","model":"","sampling":{"temperature":0.7,"top_p":1.0,"top_k":0,"min_p":0.0,"presence_penalty":0.0,"frequency_penalty":0.0,"repetition_penalty":1.0,"seed":null,"max_tokens":9,"min_tokens":0,"stop":["\n"],"stop_token_ids":[2],"ignore_eos":false,"logit_bias":{"5":-1.0},"guide":null},"own_stops":[2],"n":0,"request_id":"request-c2","body_hash":"","idempotency_key":"i","template_hash":"","tokenizer_hash":"","created_at":1.5,"first_token_at":null,"finished_at":0.0,"fork":{"reason":"assistant_edited","at":1,"detail":"content"},"notes":[{"kind":"prefill","detail":""}],"labels":{"user":"ä"},"cached_tokens":4,"constrained":true,"instructed":false}');
CREATE TABLE lesson (
  key TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL,
  top_k INTEGER NOT NULL,
  token_ids BLOB NOT NULL,
  logprobs BLOB NOT NULL,
  token_logprobs BLOB NOT NULL,
  rest TEXT NOT NULL
);
INSERT INTO "lesson" VALUES('k1','s',2,X'000000000100000002000000030000000400000005000000',X'000080BE000080BE000080BE000080BE000080BE000080BE',X'000000BF000000BF000000BF','{"error":null}');
INSERT INTO "lesson" VALUES('k2','s',2,X'',X'',X'','{"error":"it has 9 tokens too many"}');
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('schema','3');
CREATE TABLE part (
  turn_id TEXT NOT NULL REFERENCES turn (id),
  place INTEGER NOT NULL,
  ids BLOB NOT NULL,
  logprobs BLOB NOT NULL,
  rest TEXT NOT NULL,
  PRIMARY KEY (turn_id, place)
);
INSERT INTO "part" VALUES('c1.0',0,X'000000000100000002000000',X'CDCCCCBDCDCCCCBDCDCCCCBD','{"engine":"vllm-0","engine_kind":"vllm","logprob_kind":"raw","weight_version":null,"step":null,"version_source":null,"sidecars":{}}');
INSERT INTO "part" VALUES('c1.1',0,X'0000000001000000',X'CDCCCCBDCDCCCCBD','{"engine":"vllm-0","engine_kind":"vllm","logprob_kind":"raw","weight_version":"v1","step":1,"version_source":"engine","sidecars":{}}');
INSERT INTO "part" VALUES('c1.1',1,X'00000000',X'CDCCCCBD','{"engine":"vllm-1","engine_kind":"vllm","logprob_kind":"raw","weight_version":null,"step":null,"version_source":null,"sidecars":{}}');
INSERT INTO "part" VALUES('c2.0',0,X'000000000100000002000000',X'CDCCCCBDCDCCCCBDCDCCCCBD','{"engine":"vllm-0","engine_kind":"vllm","logprob_kind":"raw","weight_version":null,"step":null,"version_source":null,"sidecars":{}}');
CREATE TABLE session (
  id TEXT NOT NULL PRIMARY KEY,
  grp TEXT,
  state TEXT NOT NULL,
  created_at REAL NOT NULL,
  touched_at REAL NOT NULL,
  rest TEXT NOT NULL
);
INSERT INTO "session" VALUES('s','g','completed',1.0,2.0,'{"key_hash":"k","group_size":8,"role":"eval","history":"verbatim","reasoning":"strict","sampling":{"defaults":{"top_p":0.5},"force":{"seed":1}},"budget":{"turns":9,"tokens":900},"ttl":60.0,"metadata":{"task":[1,null,{"deep":"ä"}]},"reward":0.5,"rewards":{"c1.0":null,"c1.1":1.0},"scores":{"length":2.0},"reward_metadata":{"by":"judge"},"reward_revision":2,"error":"e","attempts":{"disconnected":1}}');
CREATE TABLE teacher (
  name TEXT NOT NULL PRIMARY KEY,
  rest TEXT NOT NULL
);
INSERT INTO "teacher" VALUES('hinted','{"model":"small","weight":0.5,"top_k":2,"positions":"all","framing":{"system":"You are $name.","hint":"ä","tools":[{"type":"function","function":{"name":"f"}}]},"template_hash":"t"}');
INSERT INTO "teacher" VALUES('large','{"model":"large","weight":1.0,"top_k":0,"positions":"sampled","framing":null,"template_hash":""}');
CREATE TABLE turn (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  call_id TEXT NOT NULL REFERENCES call (id),
  choice INTEGER NOT NULL,
  top BLOB,
  rest TEXT NOT NULL,
  UNIQUE (call_id, choice)
);
INSERT INTO "turn" VALUES(1,'c1.0','c1',0,NULL,'{"reply":{"role":"assistant","content":"hi","reasoning":null,"tool_calls":[],"tool_call_id":null,"name":null},"finish_reason":"stop","stop_reason":null,"limit":null,"ending":{"rest":"","calls_closed":false},"notes":[],"written":null}');
INSERT INTO "turn" VALUES(2,'c1.1','c1',1,X'93929201CBBFE00000000000009202CBBFD000000000000090919203CBFE37E43C8800759C','{"reply":{"role":"assistant","content":null,"reasoning":"hm","tool_calls":[{"id":"t1","name":"f","arguments":{"x":1.5},"text":null},{"id":"t2","name":"g","arguments":"{x","text":null}],"tool_call_id":null,"name":null},"finish_reason":"tool_calls","stop_reason":7,"limit":"context","ending":{"rest":"","calls_closed":false},"notes":[{"kind":"tool_call_unparsed","detail":"t2"}],"written":null}');
INSERT INTO "turn" VALUES(3,'c2.0','c2',0,NULL,'{"reply":{"role":"assistant","content":"hi","reasoning":null,"tool_calls":[],"tool_call_id":null,"name":null},"finish_reason":"stop","stop_reason":null,"limit":null,"ending":{"rest":"","calls_closed":false},"notes":[],"written":null}');
CREATE TABLE weights (
  seq INTEGER PRIMARY KEY,
  version TEXT NOT NULL,
  step INTEGER
);
INSERT INTO "weights" VALUES(1,'v1',NULL);
INSERT INTO "weights" VALUES(2,'v2',7);
INSERT INTO "weights" VALUES(3,'v1',8);
CREATE INDEX session_by_age ON session (created_at, id);
CREATE INDEX call_by_session ON call (session_id);
CREATE INDEX call_by_parent ON call (parent);
CREATE INDEX lesson_by_session ON lesson (session_id);
COMMIT;
