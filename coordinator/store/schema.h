/* schema.h: the tables of DIR/store.db, version 1 (PRAGMA user_version). Inner part of sqlite.c. */
#ifndef RV_COORDINATOR_STORE_SCHEMA_H
#define RV_COORDINATOR_STORE_SCHEMA_H

enum { STORE_SCHEMA_VERSION = 1, STORE_APPLICATION_ID = 0x52495655 /* "RIVU" */ };

/* ends_us, revoked_us: 0: never. uses: members that it admits. */
#define STORE_INVITES                                                                                                  \
	"CREATE TABLE invites (id INTEGER PRIMARY KEY, hash BLOB UNIQUE NOT NULL, made_us INTEGER NOT NULL,"               \
	" uses INTEGER NOT NULL, ends_us INTEGER NOT NULL, approve INTEGER NOT NULL, revoked_us INTEGER NOT NULL);"        \
	"CREATE TABLE came (member INTEGER PRIMARY KEY, invite INTEGER NOT NULL);" /* by which invite */                   \
	"CREATE INDEX came_by_invite ON came (invite);"                                                                    \
	"CREATE TABLE askers (key BLOB PRIMARY KEY, name TEXT NOT NULL, invite INTEGER NOT NULL,"                          \
	" asked_us INTEGER NOT NULL, state INTEGER NOT NULL) WITHOUT ROWID;"

#define STORE_SCHEMA                                                                                                   \
	"CREATE TABLE run (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;" /* hash: BLAKE2b-256 of body */      \
	"CREATE TABLE records (id INTEGER PRIMARY KEY, type INTEGER NOT NULL, round INTEGER NOT NULL, body BLOB NOT NULL," \
	" hash BLOB NOT NULL);"                                                                                            \
	"CREATE TABLE members (member INTEGER PRIMARY KEY, key BLOB NOT NULL, name TEXT NOT NULL, addr TEXT NOT NULL,"     \
	" banned INTEGER NOT NULL, record INTEGER NOT NULL);" /* the last MEMBER or AWAY record of it */                   \
	"CREATE UNIQUE INDEX members_by_key ON members (key);" STORE_INVITES                                               \
	"CREATE TABLE commits (round INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, participants INTEGER NOT NULL,"        \
	" tokens INTEGER NOT NULL, loss REAL NOT NULL, tokens_per_s REAL NOT NULL, tx_bytes INTEGER NOT NULL,"             \
	" compute_us INTEGER NOT NULL, reduce_us INTEGER NOT NULL, wall_us INTEGER NOT NULL,"                              \
	" duration_us INTEGER NOT NULL);"

#endif
