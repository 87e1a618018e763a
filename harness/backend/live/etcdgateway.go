package live

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxStored bounds an answer of etcd: an object is at most 1.5 MiB, a third more in base64.
const maxStored = 4 << 20

// ReadEtcdGateway reads a key through etcd's JSON gateway, which needs no client library. url is etcd's, without a path.
func ReadEtcdGateway(ctx context.Context, transport http.RoundTripper, url, key string) ([]byte, error) {
	body, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStored))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", response.Status, text)
	}
	var answer struct {
		KVs []struct {
			Value string `json:"value"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.KVs) != 1 {
		return nil, errors.New("it is not there")
	}
	return base64.StdEncoding.DecodeString(answer.KVs[0].Value)
}
