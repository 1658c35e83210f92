#include "store/store.h"

#include <assert.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/own.h"
#include "store/schema.h"
#include "sys/clock.h"

#define BUSY_MS 10000
#define WAL_TRIES 200 /* the switch to WAL ignores the busy timeout: 200 x 20 ms */
#define WAL_PAUSE_MS 20

enum query { TASK_PUT, CANDIDATE_PUT, VERDICT_PUT, BASELINE_PUT, BASELINE_GET, RUN_PUT, N_QUERIES };

static const char *const queries[N_QUERIES] = {
    [TASK_PUT] = "INSERT INTO task(hash, name, source) VALUES(?, ?, ?) "
                 "ON CONFLICT(hash) DO NOTHING",
    [CANDIDATE_PUT] = "INSERT INTO candidate(hash, task, contract, files) VALUES(?, ?, ?, ?) "
                      "ON CONFLICT(hash, task) DO NOTHING",
    [VERDICT_PUT] = "INSERT INTO verdict(id, task, candidate, device, json, at) "
                    "VALUES(?, ?, ?, ?, ?, ?)",
    [BASELINE_PUT] = "INSERT INTO baseline(task, device, versions, arm, time, at) "
                     "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(task, device, versions, arm) "
                     "DO UPDATE SET time = excluded.time, at = excluded.at",
    [BASELINE_GET] = "SELECT time FROM baseline "
                     "WHERE task = ? AND device = ? AND versions = ? AND arm = ?",
    [RUN_PUT] = "INSERT INTO run(id, command, config, state, at) VALUES(?, ?, ?, ?, ?) "
                "ON CONFLICT(id) DO UPDATE SET state = excluded.state, at = excluded.at",
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *stmt[N_QUERIES]; /* prepared at first use */
};

static enum err_code db_fail(struct store *s, const char *doing, struct err *err)
{
    int rc = sqlite3_errcode(s->db) & 0xff;
    err_raise(err, rc == SQLITE_NOTADB ? ERR_FORMAT : ERR_SYSTEM, "store, %s: %s", doing,
              sqlite3_errmsg(s->db));
    if (rc == SQLITE_BUSY)
        err_hint(err, "another process holds the file for more than %d s", BUSY_MS / 1000);
    return err->code;
}

static enum err_code run_sql(struct store *s, const char *sql, const char *doing, struct err *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? OK : db_fail(s, doing, err);
}

/* The one text that a query answers, NULL when it answers no row. */
static enum err_code text_of(struct store *s, struct arena *a, const char *sql, const char **ret,
                             struct err *err)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
        return db_fail(s, "look", err);
    int rc = sqlite3_step(q);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    *ret = text ? str_z(a, str_from(text)) : NULL;
    sqlite3_finalize(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? OK : db_fail(s, "look", err);
}

static enum err_code wal_enter(struct store *s, const char *path, struct err *err)
{
    own_arena tmp = { 0 };
    const char *mode = NULL;
    for (int i = 0; text_of(s, &tmp, "PRAGMA journal_mode=WAL", &mode, err) != OK; i++) {
        if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY || i == WAL_TRIES)
            return err->code;
        poll(NULL, 0, WAL_PAUSE_MS);
    }
    if (mode != NULL && strcmp(mode, "wal") == 0)
        return OK;
    err_raise(err, ERR_SYSTEM, "store '%s': this file system allows no write-ahead log", path);
    return err_hint(err, "set CUDA_AGENT_HOME to a folder on a local disk");
}

/* Inside a write transaction: two first openers must not both create. */
static enum err_code schema_settle(struct store *s, const char *path, struct err *err)
{
    own_arena tmp = { 0 };
    const char *any = NULL, *version = NULL;
    if (text_of(s, &tmp, "SELECT name FROM sqlite_master LIMIT 1", &any, err) != OK)
        return err->code;
    if (any == NULL)
        return run_sql(s, store_schema_sql, "create tables", err);
    if (text_of(s, &tmp, "SELECT name FROM sqlite_master WHERE name = 'meta'", &any, err) != OK)
        return err->code;
    if (any == NULL)
        return err_raise(err, ERR_FORMAT, "'%s' is a database of another program", path);
    if (text_of(s, &tmp, "SELECT value FROM meta WHERE key = 'schema'", &version, err) != OK)
        return err->code;
    if (version != NULL && strcmp(version, STORE_SCHEMA_VERSION) == 0)
        return OK;
    err_raise(err, ERR_FORMAT, "store '%s' has schema %s, this program knows " STORE_SCHEMA_VERSION,
              path, version ? version : "(none)");
    return err_hint(err, "use the program that wrote it, or another CUDA_AGENT_HOME");
}

static enum err_code open_in(struct store *s, const char *path, struct err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        if (s->db == NULL)
            return err_raise(err, ERR_SYSTEM, "store: no memory");
        db_fail(s, "open", err);
        return err_within(err, "'%s'", path);
    }
    sqlite3_busy_timeout(s->db, BUSY_MS);
    if (wal_enter(s, path, err) != OK ||
        run_sql(s, "PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE", "begin", err) != OK)
        return err->code;
    if (schema_settle(s, path, err) != OK) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* the first error is the one to tell */
        return err->code;
    }
    return run_sql(s, "COMMIT", "commit", err);
}

enum err_code store_open(const char *path, struct store **ret, struct err *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_sys(err, "room for the store");
    if (open_in(s, path, err) != OK) {
        store_close(s);
        return err->code;
    }
    *ret = s;
    return OK;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < N_QUERIES; i++)
        sqlite3_finalize(s->stmt[i]);
    sqlite3_close(s->db);
    free(s);
}

void store_id(char ret[27])
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; /* no I, L, O, U */
    unsigned char b[16];
    uint64_t ms = (uint64_t)clock_utc_us() / 1000;
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)(ms >> (40 - 8 * i));
    ssize_t got = getrandom(b + 6, 10, 0);
    assert(got == 10); /* up to 256 bytes are never short nor interrupted */
    (void)got;
    for (int i = 0; i < 26; i++) {
        unsigned v = 0;
        for (int k = 0; k < 5; k++) {
            int bit = i * 5 + k - 2; /* 26 digits hold 130 bits: two zeros in front */
            v = v << 1 | (bit < 0 ? 0U : (unsigned)(b[bit / 8] >> (7 - bit % 8) & 1));
        }
        ret[i] = digit[v];
    }
    ret[26] = '\0';
}

/* Bind texts to ?1.., then `at` (when not negative) to the next. */
static enum err_code query_begin(struct store *s, enum query q, const char *const *text, int n,
                                 int64_t at, struct err *err)
{
    sqlite3_stmt **stmt = &s->stmt[q];
    if (*stmt == NULL && sqlite3_prepare_v3(s->db, queries[q], -1, SQLITE_PREPARE_PERSISTENT, stmt,
                                            NULL) != SQLITE_OK)
        return db_fail(s, "prepare", err);
    for (int i = 0; i < n; i++)
        if (sqlite3_bind_text(*stmt, i + 1, text[i], -1, SQLITE_STATIC) != SQLITE_OK)
            return db_fail(s, "bind", err);
    if (at >= 0 && sqlite3_bind_int64(*stmt, n + 1, at) != SQLITE_OK)
        return db_fail(s, "bind", err);
    return OK;
}

static enum err_code query_write(struct store *s, enum query q, const char *const *text, int n,
                                 int64_t at, struct err *err)
{
    if (query_begin(s, q, text, n, at, err) != OK)
        return err->code;
    enum err_code code = sqlite3_step(s->stmt[q]) == SQLITE_DONE ? OK : db_fail(s, "write", err);
    sqlite3_reset(s->stmt[q]);
    sqlite3_clear_bindings(s->stmt[q]);
    return code;
}

enum err_code store_task_put(struct store *s, const struct task *t, struct err *err)
{
    own_arena tmp = { 0 };
    const char *text[] = { t->hash, t->name, str_z(&tmp, t->source) };
    return query_write(s, TASK_PUT, text, COUNT(text), -1, err);
}

/* Sources are text nearly always; one that is not UTF-8 is kept as hex, under another key. */
static json_t *file_json(struct arena *a, const struct source_file *f)
{
    json_t *text = json_stringn(f->text.ptr ? f->text.ptr : "", f->text.len);
    if (text != NULL)
        return json_pack("{s:s, s:o}", "name", f->name, "text", text);
    struct buf hex = { .arena = a, .max = 2 * CANDIDATE_FILE_BYTES_MAX };
    for (size_t i = 0; i < f->text.len; i++)
        buf_addf(&hex, "%02x", (unsigned char)f->text.ptr[i]);
    return json_pack("{s:s, s:s}", "name", f->name, "hex", hex.ptr);
}

enum err_code store_candidate_put(struct store *s, const struct candidate *c, const char *task_hash,
                                  struct err *err)
{
    own_arena tmp = { 0 };
    own_json top = json_pack("{s:s, s:s, s:[]}", "target", target_name(c->target), "author",
                             c->author ? c->author : "", "files");
    for (size_t i = 0; i < c->n_files; i++)
        json_array_append_new(json_object_get(top, "files"), file_json(&tmp, &c->file[i]));
    own_mem char *files = json_dumps(top, JSON_COMPACT);
    const char *text[] = { c->hash, task_hash, contract_name(c->contract), files };
    if (files == NULL)
        return err_raise(err, ERR_SYSTEM, "store: no memory for a candidate");
    return query_write(s, CANDIDATE_PUT, text, COUNT(text), -1, err);
}

enum err_code store_verdict_put(struct store *s, const struct verdict *v, struct err *err)
{
    if (v->id[0] == '\0')
        return err_raise(err, ERR_STATE, "store: a verdict without an id");
    own_json j = verdict_json(v);
    own_mem char *json = json_dumps(j, JSON_COMPACT);
    if (json == NULL)
        return err_raise(err, ERR_SYSTEM, "store: no memory for a verdict");
    const char *text[] = { v->id, v->task_hash, v->candidate_hash, v->device_uuid, json };
    return query_write(s, VERDICT_PUT, text, COUNT(text), clock_utc_us(), err);
}

enum err_code store_baseline_put(struct store *s, const struct baseline_key *key, const char *json,
                                 struct err *err)
{
    const char *text[] = { key->task_hash, key->device, key->versions, key->arm, json };
    return query_write(s, BASELINE_PUT, text, COUNT(text), clock_utc_us(), err);
}

enum err_code store_baseline_get(struct store *s, struct arena *a, const struct baseline_key *key,
                                 const char **ret_json, struct err *err)
{
    const char *text[] = { key->task_hash, key->device, key->versions, key->arm };
    if (query_begin(s, BASELINE_GET, text, COUNT(text), -1, err) != OK)
        return err->code;
    sqlite3_stmt *q = s->stmt[BASELINE_GET];
    int rc = sqlite3_step(q);
    enum err_code code = OK;
    if (rc == SQLITE_ROW)
        *ret_json = str_z(a, str_from((const char *)sqlite3_column_text(q, 0)));
    else if (rc == SQLITE_DONE)
        *ret_json = NULL;
    else
        code = db_fail(s, "read", err);
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    return code;
}

enum err_code store_run_put(struct store *s, const char *id, const char *command,
                            const char *config_json, const char *state, struct err *err)
{
    const char *text[] = { id, command, config_json, state };
    return query_write(s, RUN_PUT, text, COUNT(text), clock_utc_us(), err);
}
