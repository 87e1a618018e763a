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

// KeyValue is what etcd holds under a key.
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

// RangeEtcdGateway reads keys through etcd's JSON gateway, which needs no client library, and says whether there are more. url is
// etcd's, without a path.
func RangeEtcdGateway(ctx context.Context, transport http.RoundTripper, url string, r Range) (found []KeyValue, more bool, err error) {
	body, err := json.Marshal(rangeRequest{Key: []byte(r.From), RangeEnd: []byte(r.End), Limit: r.Limit})
	if err != nil {
		return nil, false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStored))
	if err != nil {
		return nil, false, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, false, fmt.Errorf("%s: %.200s", response.Status, text)
	}
	var answer rangeAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, false, err
	}
	return answer.KVs, answer.More, nil
}

// ReadEtcdGateway is RangeEtcdGateway for one key.
func ReadEtcdGateway(ctx context.Context, transport http.RoundTripper, url, key string) ([]byte, error) {
	found, _, err := RangeEtcdGateway(ctx, transport, url, Range{From: key})
	if err == nil && len(found) != 1 {
		err = errors.New("it is not there")
	}
	if err != nil {
		return nil, err
	}
	return found[0].Value, nil
}
