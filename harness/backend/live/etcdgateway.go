package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
