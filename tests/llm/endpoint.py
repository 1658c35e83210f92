#!/usr/bin/env python3
"""A model endpoint with programmed faults, for tests: OpenAI's and Anthropic's dialect, vLLM's and SGLang's tokens.

The first part of a path names the scenario. On start one line of JSON: the ports and the certificate. Then a line "hits"
on stdin is answered with what was asked of it so far; the end of stdin ends it."""
import collections
import http.server
import json
import os
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time

lock = threading.Lock()
hits = collections.Counter()
bodies = collections.defaultdict(list)
trapped: list[str] = []
busy = {"now": 0, "most": 0}


def chunk(delta: dict, finish: str | None = None) -> dict:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def events(*objects: dict | str) -> list[bytes]:
    return [f"data: {o if isinstance(o, str) else json.dumps(o)}\n\n".encode() for o in objects]


ANSWER = events(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop"), USAGE, "[DONE]")


def whole(message: dict, finish: str = "stop") -> dict:
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


def call(arguments: str) -> list[dict]:
    return [{"index": 0, "id": "a", "type": "function", "function": {"name": "Bash", "arguments": arguments}}]


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def plain(self, status: int, body, **headers):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, pieces, end: bool = True):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for p in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(p), p))
            self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def hang(self):
        """Until the client leaves."""
        self.wfile.flush()
        self.connection.settimeout(60)
        try:
            self.connection.recv(1)
        except OSError:
            pass
        self.close_connection = True

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length))
        scenario = self.path.split("/")[1]
        with lock:
            hits[scenario] += 1
            n = hits[scenario]
            bodies[scenario].append(body)
        try:
            getattr(self, "on_" + scenario.replace("-", "_"))(n, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def ok(self, body):
        self.stream(ANSWER) if body.get("stream") else self.plain(200, whole({"content": "Hello"}))

    def on_ok(self, n, body):
        self.ok(body)

    def on_bytes(self, n, body):
        self.stream([b"%c" % b for p in ANSWER for b in p])

    def on_rate(self, n, body):
        limits = [{"Retry_After": "0"}, {"retry_after_ms": "1"}, {"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}]
        if n <= len(limits):
            self.plain(429, {"error": {"message": "slow down", "type": "rate_limit"}}, **limits[n - 1])
        else:
            self.ok(body)

    def on_rate_far(self, n, body):
        self.plain(429, {"error": {"message": "slow down"}}, Retry_After="86400") if n == 1 else self.ok(body)

    on_rate_twice = on_rate_far

    def on_rate_hung(self, n, body):
        if n > 1:
            return self.ok(body)
        self.send_response(429)
        self.send_header("Content-Length", "1000")
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(b'{"error":')
        self.hang()

    def on_quota(self, n, body):
        self.plain(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}})

    def on_shaky(self, n, body):
        statuses = [500, 529, 503]
        self.plain(statuses[n - 1], "oops") if n <= len(statuses) else self.ok(body)

    def on_down(self, n, body):
        self.plain(500, {"error": {"message": "internal"}})

    def on_drop(self, n, body):
        self.stream(ANSWER[:2], end=False) if n == 1 else self.ok(body)

    def on_drop_after_reason(self, n, body):
        self.stream(ANSWER[:3], end=False)

    def on_silent(self, n, body):
        self.hang()

    def on_stall(self, n, body):
        self.stream(ANSWER[:1], end=False)
        self.hang()

    def on_linger(self, n, body):
        self.stream(ANSWER, end=False)
        self.hang()

    def on_slow(self, n, body):
        def pieces():
            for _ in range(15):
                time.sleep(0.1)
                yield b": keep-alive\n\n"
            yield from ANSWER
        self.stream(pieces())

    def on_redirect(self, n, body):
        self.plain(307, "", Location=f"http://127.0.0.1:{trap.server_port}/ok/v1/chat/completions?secret=1")

    def on_garbage(self, n, body):
        self.plain(200, "<html>Welcome to the hotel's network</html>")

    def on_body(self, n, body):
        self.plain(200, whole({"content": "Hello"}))

    def on_options(self, n, body):
        if "stream_options" in body:
            self.plain(400, {"error": {"message": "Unknown parameter: 'stream_options'.", "param": "stream_options"}})
        else:
            self.ok(body)

    def on_llamacpp(self, n, body):
        if body.get("logprobs") and body["stream"]:
            self.plain(500, {"error": {"message": "logprobs is not supported with tools + stream", "code": 500}})
        else:
            self.ok(body)

    def on_nameless(self, n, body):
        if body["stream"] or body.get("logprobs"):
            self.plain(422, {"detail": "cannot process"})
        else:
            self.ok(body)

    def on_missing(self, n, body):
        self.plain(404, {"error": {"message": "model 'm' is not here"}})

    def on_broken(self, n, body):
        if body["stream"]:
            self.stream(events(chunk({"tool_calls": call('{"command": "l')}), chunk({}, "tool_calls"), "[DONE]"))
        else:
            self.plain(200, whole({"content": None, "tool_calls": call('{"command": "ls"}')}, "tool_calls"))

    def on_room(self, n, body):
        if body["max_tokens"] > 1096:
            self.plain(400, {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested "
                                                  "7000 tokens (3000 in the messages, 4000 in the completion)."}})
        else:
            self.ok(body)

    def on_auth(self, n, body):
        self.plain(401, {"error": {"message": "Incorrect API key: " + self.headers.get("Authorization", "none")}})

    def on_overflow(self, n, body):
        self.plain(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})

    def on_filter(self, n, body):
        self.plain(400, {"error": {"message": "blocked", "code": "content_filter"}})

    def on_busy(self, n, body):
        with lock:
            busy["now"] += 1
            busy["most"] = max(busy["most"], busy["now"])
        time.sleep(0.02)
        with lock:
            busy["now"] -= 1
        self.ok(body)

    def on_claude(self, n, body):
        right = self.headers.get("x-api-key") == "sk-test-1234" and self.headers.get("anthropic-version")
        if not right or not self.path.endswith("/v1/messages"):
            return self.plain(401, {"type": "error", "error": {"type": "authentication_error", "message": "no"}})
        if n == 1:
            return self.plain(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        self.stream(events(
            {"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 3, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"}))

    def on_tokens(self, n, body):
        if n == 1:
            return self.plain(503, "loading")
        if self.path.endswith("/generate"):
            rows = [[-0.5, 7, None], [-0.25, 8, None]]
            return self.plain(200, {"text": "x", "output_ids": [7, 8],
                                    "meta_info": {"finish_reason": {"type": "stop", "matched": 8}, "prompt_tokens":
                                                  len(body["input_ids"]), "output_token_logprobs": rows}})
        self.plain(200, {"choices": [{"token_ids": [7, 8], "logprobs": {"token_logprobs": [-0.5, -0.25]},
                                      "prompt_token_ids": body["prompt"], "finish_reason": "length"}]})


class Trap(http.server.BaseHTTPRequestHandler):
    """Another host: who comes here was led astray."""

    def log_message(self, *_):
        pass

    def caught(self):
        with lock:
            trapped.append(self.command + " " + self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_CONNECT = caught


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # a client that leaves, or a handshake that it breaks off


def certificate(folder: str) -> tuple[str, str]:
    key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return key, cert


def served(handler, context: ssl.SSLContext | None = None) -> Server:
    server = Server(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


with tempfile.TemporaryDirectory() as folder:
    key, cert = certificate(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    main, trap, safe = served(Endpoint), served(Trap), served(Endpoint, tls)
    print(json.dumps({"port": main.server_port, "trap": trap.server_port, "tls": safe.server_port, "ca": cert}), flush=True)
    for line in sys.stdin:
        with lock:
            print(json.dumps({"hits": hits, "bodies": bodies, "trapped": trapped, "most": busy["most"]}), flush=True)
