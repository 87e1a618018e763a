package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// removeMember takes the etcd member of a node out of the cluster, through another node's. One that is not there is no
// error.
func (p *plane) removeMember(ctx context.Context, name string) error {
	var errs []error
	for _, n := range p.nodes.List() {
		err := p.removeMemberThrough(ctx, n.Name, name)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("remove the etcd member of %s: %w", name, errors.Join(errs...))
}

// member as etcd's JSON gateway shows it: 64-bit numbers are texts.
type member struct {
	ID   string `json:"ID"`
	Name string `json:"name"`
}

func (p *plane) removeMemberThrough(ctx context.Context, node, gone string) error {
	var list struct {
		Members []member `json:"members"`
	}
	if err := p.askEtcd(ctx, node, "/v3/cluster/member/list", struct{}{}, &list); err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.Name == gone {
			return p.askEtcd(ctx, node, "/v3/cluster/member/remove", member{ID: m.ID}, nil)
		}
	}
	return nil
}

// askEtcd asks the member of a node through its JSON gateway.
func (p *plane) askEtcd(ctx context.Context, node, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	url := "https://" + p.address(node) + ":" + portEtcd + path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: p.etcdTLS, DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.200s", path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
