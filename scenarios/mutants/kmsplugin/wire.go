package kmsplugin

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// reading makes the server read messages with a function in front of protobuf's parser. It returns the message to parse.
func reading(f func([]byte) ([]byte, error)) func(*Reference) {
	return func(r *Reference) {
		r.Options = append(r.Options, grpc.ForceServerCodecV2(codec{CodecV2: encoding.GetCodecV2(proto.Name), read: f}))
	}
}

// parserErrorsIgnored makes the server use what was parsed before an error.
func parserErrorsIgnored(r *Reference) {
	r.Options = append(r.Options, grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), func(m []byte) ([]byte, error) { return m, nil }, true}))
}

// codec is that of protobuf with a function in front.
type codec struct {
	encoding.CodecV2
	read func([]byte) ([]byte, error)
	// lenient ignores the errors of the parser.
	lenient bool
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, err := c.read(data.Materialize())
	if err != nil {
		return err
	}
	err = c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, v)
	if c.lenient {
		return nil
	}
	return err
}

type wireField struct {
	number protowire.Number
	kind   protowire.Type
	whole  []byte // with its tag
}

// fields splits a message. It stops where the message is malformed.
func fields(message []byte) (list []wireField) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return list
		}
		list = append(list, wireField{number, kind, message[:n]})
		message = message[n:]
	}
	return list
}
