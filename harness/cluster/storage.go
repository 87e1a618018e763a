package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
)

// maxStored bounds an answer of etcd: an object is at most 1.5 MiB, a third more in base64, and a page has a few large ones.
const maxStored = 64 << 20

// Range is a part of etcd's keys, in order.
type Range struct {
	// From is the first key; End is behind the last one, empty for From alone.
	From, End string
	// Limit is the most keys of one answer; 0 is one.
	Limit int
}

type KeyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// rangeRequest and rangeAnswer are etcd's JSON; bytes are base64 on both sides.
type (
	rangeRequest struct {
		Key      []byte `json:"key"`
		RangeEnd []byte `json:"range_end,omitempty"`
		Limit    int    `json:"limit,omitempty"`
	}
	rangeAnswer struct {
		KVs  []KeyValue `json:"kvs"`
		More bool       `json:"more"`
	}
)

// AskEtcdGateway asks through etcd's JSON gateway, which needs no client library. url has the path; answer may be nil.
func AskEtcdGateway(ctx context.Context, transport http.RoundTripper, url string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStored))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", request.URL.Path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// RangeEtcdGateway reads keys and reports whether there are more. url is etcd's, without a path.
func RangeEtcdGateway(ctx context.Context, transport http.RoundTripper, url string, r Range) (found []KeyValue, more bool, err error) {
	var answer rangeAnswer
	err = AskEtcdGateway(ctx, transport, url+"/v3/kv/range", rangeRequest{Key: []byte(r.From), RangeEnd: []byte(r.End), Limit: r.Limit}, &answer)
	return answer.KVs, answer.More, err
}

// inventoryPage is how many objects are read at once. It is halved when an answer is too large (maxStored).
const inventoryPage = 128

// RangeAll reads from a key up to an end, page by page.
func RangeAll(ctx context.Context, s Storage, from, end string, read func([]KeyValue) error) error {
	for r := (Range{From: from, End: end, Limit: inventoryPage}); r.From != ""; {
		found, more, err := s.RangeEtcd(ctx, r)
		switch {
		case err != nil && ctx.Err() == nil && r.Limit > 1:
			r.Limit /= 2
			continue
		case err != nil:
			return fmt.Errorf("read %s* from etcd: %w", from, err)
		}
		if err := read(found); err != nil {
			return err
		}
		r.From = ""
		if more && len(found) > 0 {
			r.From = string(found[len(found)-1].Key) + "\x00"
		}
	}
	return nil
}

// SnapshotEtcdGateway is Storage.Snapshot of an etcd that is asked through its JSON gateway.
func SnapshotEtcdGateway(ctx context.Context, s Storage, from, end string, ask func(ctx context.Context, path string, question any) error) (restore func(context.Context) error, err error) {
	kept := map[string]KeyValue{}
	if err := RangeAll(ctx, s, from, end, func(found []KeyValue) error {
		for _, kv := range found {
			kept[string(kv.Key)] = kv
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for _, key := range slices.Sorted(maps.Keys(kept)) {
			if err := ask(ctx, "/v3/kv/put", kept[key]); err != nil {
				return fmt.Errorf("restore %s in etcd: %w", key, err)
			}
		}
		return RangeAll(ctx, s, from, end, func(found []KeyValue) error {
			for _, kv := range found {
				if _, there := kept[string(kv.Key)]; there {
					continue
				}
				if err := ask(ctx, "/v3/kv/deleterange", rangeRequest{Key: kv.Key}); err != nil {
					return fmt.Errorf("delete %s in etcd: %w", kv.Key, err)
				}
			}
			return nil
		})
	}, nil
}

// ReadEtcd reads one key.
func ReadEtcd(ctx context.Context, s Storage, key string) ([]byte, error) {
	found, _, err := s.RangeEtcd(ctx, Range{From: key})
	if err == nil && len(found) != 1 {
		err = errors.New("it is not there")
	}
	if err != nil {
		return nil, err
	}
	return found[0].Value, nil
}

// leftOut stands where a secret was.
const leftOut = "(left out)"

// secretFields are the fields of encryption and kubeadm configurations whose value opens something. Lower case.
func secretFields() []string {
	return []string{"secret", "token", "tlsbootstraptoken", "certificatekey"}
}

// WithoutSecrets is YAML, of one or several documents, with the values of secret fields left out. Text that is not YAML is
// an error: nobody knows what is in it.
func WithoutSecrets(text []byte) ([]byte, error) {
	in := goyaml.NewDecoder(bytes.NewReader(text))
	var out bytes.Buffer
	encoder := goyaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for {
		var document goyaml.Node
		err := in.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("leave out secrets: %w", err)
		}
		leaveOut(&document)
		if err := encoder.Encode(&document); err != nil {
			return nil, fmt.Errorf("leave out secrets: %w", err)
		}
	}
	err := encoder.Close()
	return out.Bytes(), err
}

// leaveOut walks a document. Comments go, too: they may repeat anything.
func leaveOut(n *goyaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for i, child := range n.Content {
		secret := n.Kind == goyaml.MappingNode && i%2 == 1 && slices.Contains(secretFields(), strings.ToLower(n.Content[i-1].Value))
		if secret && opens(child) {
			*child = goyaml.Node{Kind: goyaml.ScalarNode, Tag: "!!str", Value: leftOut}
			continue
		}
		leaveOut(child)
	}
}

// opens: a number or a text; a reference to a Secret by its name is none, so mappings are looked into.
func opens(n *goyaml.Node) bool { return n.Kind != goyaml.MappingNode && n.Kind != goyaml.SequenceNode }
