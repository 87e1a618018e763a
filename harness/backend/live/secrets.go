package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
)

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
