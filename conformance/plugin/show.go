package plugin

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

// maxShown bounds one value in the evidence, in bytes.
const maxShown = 300

// show is a response as evidence shows it: never a plaintext, and of bounded length.
func show(response any) string {
	switch r := response.(type) {
	case nil:
		return "no answer"
	case string:
		return clip(r)
	case error:
		if s, ok := status.FromError(r); ok {
			return clip(fmt.Sprintf("error %s: %s", s.Code(), s.Message()))
		}
		return clip(r.Error())
	case *kmsapi.StatusResponse:
		return fmt.Sprintf("version %s, healthz %s, key_id %s", quote(r.GetVersion()), quote(r.GetHealthz()), quote(r.GetKeyId()))
	case *kmsapi.EncryptResponse:
		return fmt.Sprintf("ciphertext of %d bytes, key_id %s, %d annotations", len(r.GetCiphertext()), quote(r.GetKeyId()), len(r.GetAnnotations()))
	case *kmsapi.DecryptResponse:
		return fmt.Sprintf("plaintext of %d bytes", len(r.GetPlaintext()))
	}
	return clip(fmt.Sprint(response))
}

func quote(s string) string { return clip(fmt.Sprintf("%q", s)) }

// clip cuts a long text and says how long it was.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxShown {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:maxShown], ""), len(s))
}
