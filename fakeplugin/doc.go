// Package fakeplugin groups the packages of a KMS v2 plugin with injectable faults, from the bottom up:
//
//   - endpoint: where a server listens (socket file, abstract socket, TCP), and stale socket files;
//   - httpjson: strict JSON over HTTP, shared by the two control APIs;
//   - journal: a bounded log of calls that is streamed as JSON lines;
//   - keyring: AES-256-GCM under versioned KEKs;
//   - remotekms: the model of the remote KMS that the plugins of all nodes share;
//   - plugin: the correct KMS v2 service, which notices a rotation with a configured lag;
//   - profile: the providers as data: key_id, latencies, failures;
//   - upstream: the plugin that stands in front of another KMS v2 plugin;
//   - fault: faults as values, and the pure decision which fault affects a call;
//   - server: the gRPC server that carries out these decisions on a socket;
//   - control: the HTTP API that injects and releases faults, and its client;
//   - cli: the commands.
//
// These packages do not depend on reporters, aggregators or scenarios.
package fakeplugin
