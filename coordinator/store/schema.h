/* schema.h: the tables of DIR/store.db, version 1 (PRAGMA user_version). Inner part of sqlite.c. */
#ifndef RV_COORDINATOR_STORE_SCHEMA_H
#define RV_COORDINATOR_STORE_SCHEMA_H

enum { STORE_SCHEMA_VERSION = 1, STORE_APPLICATION_ID = 0x52495655 /* "RIVU" */ };

#define STORE_SCHEMA                                                                                                   \
	"CREATE TABLE run (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;" /* hash: BLAKE2b-256 of body */      \
	"CREATE TABLE records (id INTEGER PRIMARY KEY, type INTEGER NOT NULL, round INTEGER NOT NULL, body BLOB NOT NULL," \
	" hash BLOB NOT NULL);"                                                                                            \
	"CREATE TABLE members (member INTEGER PRIMARY KEY, key BLOB NOT NULL, name TEXT NOT NULL, addr TEXT NOT NULL,"     \
	" banned INTEGER NOT NULL, record INTEGER NOT NULL);" /* the last MEMBER or AWAY record of it */                   \
	"CREATE UNIQUE INDEX members_by_key ON members (key);"                                                             \
	"CREATE TABLE tokens (hash BLOB PRIMARY KEY, made_us INTEGER NOT NULL, spent_by INTEGER) WITHOUT ROWID;"           \
	"CREATE TABLE commits (round INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, participants INTEGER NOT NULL,"        \
	" tokens INTEGER NOT NULL, loss REAL NOT NULL, tokens_per_s REAL NOT NULL, tx_bytes INTEGER NOT NULL,"             \
	" compute_us INTEGER NOT NULL, reduce_us INTEGER NOT NULL, wall_us INTEGER NOT NULL,"                              \
	" duration_us INTEGER NOT NULL);"

#endif
