// Package fakeplugin is the roof over a KMS v2 plugin that misbehaves on command. The rooms below it, from the bottom up:
//
//   - endpoint: where a server listens (socket file, abstract socket, TCP), and stale socket files;
//   - httpjson: strict JSON over HTTP, shared by the two control APIs;
//   - journal: a bounded log of calls that is streamed as JSON lines;
//   - keyring: AES-256-GCM under versioned KEKs;
//   - remotekms: the model of the remote KMS that the plugins of all nodes share;
//   - plugin: the honest KMS v2 service, which notices a rotation with a lag of its own;
//   - fault: what can go wrong, as values, and the pure decision what goes wrong with one call;
//   - server: the gRPC edge that carries such decisions out on a real socket;
//   - control: the HTTP API by which faults are injected and released, and its client;
//   - cli: the commands.
//
// Nothing here knows of reporters, aggregators or scenarios.
package fakeplugin
