package server

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// BenchmarkTracing measures what it costs that operations can be followed (S2-06). Both sides are the same plugin over the same socket, in
// alternating slices. As in BenchmarkPluginAgainstEcho the ratio is throughput, cpu-ratio CPU time, with over without.
//
//	uid      the uid is sent, journaled and handed on / no request has one; journals of plugin and KMS are files on both sides
//	journal  uid and journal files / no uid, and nothing is written to a file
func BenchmarkTracing(b *testing.B) {
	const uid = "7e1f0a6e-0f0d-4c55-9a3b-0d6a3f1f4a11"
	for name, files := range map[string]bool{"uid": true, "journal": false} {
		b.Run(name, func(b *testing.B) {
			compare(b, encrypting(b, tracedPlugin(b, true), uid), encrypting(b, tracedPlugin(b, files), ""), 1)
		})
	}
}

// tracedPlugin is a plugin that does without uids, and writes journals or not.
func tracedPlugin(b *testing.B, files bool) endpoint.Endpoint {
	b.Helper()
	dir := b.TempDir()
	var kmsLog *journal.Log[remotekms.Operation]
	var log *journal.Log[journal.Call]
	if files {
		kmsLog = journal.New[remotekms.Operation](journal.DefaultCapacity, created(b, dir, "kms.jsonl"))
		log = journal.New[journal.Call](journal.DefaultCapacity, created(b, dir, "plugin.jsonl"))
	}
	kms, err := remotekms.New(remotekms.Options{Journal: kmsLog})
	if err != nil {
		b.Fatal(err)
	}
	p := plugin.New(plugin.Options{Name: "cp-1/1", Key: "key-1", Service: kms, UIDOptional: true})
	if err := p.Poll(b.Context()); err != nil {
		b.Fatal(err)
	}
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(dir, "kms-1.sock")}
	s := New(Options{Listen: at, Node: "cp-1", KeyID: "1", Plugin: &plugin.Service{Plugin: p}, Journal: log})
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { stop(); running.Wait() })
	return at
}

func created(b *testing.B, dir, name string) *os.File {
	b.Helper()
	file, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	return file
}

func encrypting(b *testing.B, at endpoint.Endpoint, uid string) func() error {
	b.Helper()
	conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	client := kmsapi.NewKeyManagementServiceClient(conn)
	return func() error {
		_, err := client.Encrypt(context.Background(), &kmsapi.EncryptRequest{Uid: uid, Plaintext: []byte(seed)})
		return err
	}
}
