/* store/schema.h -- the tables, version 1: plain SQL, so that another engine can follow.
 *
 * Text ids, microseconds UTC, JSON as text. docs/store.md says what each column holds.
 */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#define STORE_SCHEMA_VERSION "1"

static const char store_schema_sql[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE blob(hash TEXT PRIMARY KEY, size INTEGER NOT NULL, path TEXT NOT NULL);"
    "CREATE TABLE task(hash TEXT PRIMARY KEY, name TEXT NOT NULL, source TEXT NOT NULL, facts "
    "TEXT);"
    "CREATE TABLE candidate(hash TEXT NOT NULL, task TEXT NOT NULL, contract TEXT NOT NULL,"
    " files TEXT NOT NULL, PRIMARY KEY(hash, task));"
    "CREATE TABLE baseline(task TEXT NOT NULL, device TEXT NOT NULL, versions TEXT NOT NULL,"
    " arm TEXT NOT NULL, time TEXT NOT NULL, at INTEGER NOT NULL,"
    " PRIMARY KEY(task, device, versions, arm));"
    "CREATE TABLE verdict(id TEXT PRIMARY KEY, task TEXT NOT NULL, candidate TEXT NOT NULL,"
    " device TEXT NOT NULL, at INTEGER NOT NULL, json TEXT NOT NULL);"
    "CREATE INDEX verdict_candidate ON verdict(candidate);"
    "CREATE INDEX verdict_task ON verdict(task);"
    "CREATE TABLE run(id TEXT PRIMARY KEY, command TEXT NOT NULL, config TEXT NOT NULL,"
    " state TEXT NOT NULL, at INTEGER NOT NULL);"
    "CREATE TABLE episode(id TEXT PRIMARY KEY, run TEXT NOT NULL, task TEXT NOT NULL,"
    " author TEXT NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, best TEXT, log TEXT);"
    "CREATE TABLE job(id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL,"
    " lease_until INTEGER NOT NULL, attempts INTEGER NOT NULL, payload TEXT NOT NULL, result TEXT);"
    "INSERT INTO meta(key, value) VALUES('schema', '" STORE_SCHEMA_VERSION "');";

#endif
