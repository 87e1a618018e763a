package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// asTable reports whether a client asks for what it prints.
func (q *Request) asTable() bool {
	return strings.Contains(q.HTTP.Header.Get("Accept"), "as=Table")
}

// table is a list as its CRD's printer columns have it, made by the code of kube-apiserver. Rows have no objects.
func (s *Server) table(q *Request, list any) (any, error) {
	made, err := s.printed(q, list)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("print %s: %w", q.Resource, err))
	}
	return made, nil
}

func (s *Server) printed(q *Request, list any) (*metav1.Table, error) {
	typ := s.Cluster.types.Get(q.Key().Resource)
	if typ == nil || typ.Columns == nil {
		return nil, fmt.Errorf("it has no columns")
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	objects := &unstructured.UnstructuredList{}
	if err := objects.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	table, err := typ.Columns.ConvertToTable(q.HTTP.Context(), objects, nil)
	if err != nil {
		return nil, err
	}
	for i := range table.Rows {
		table.Rows[i].Object = runtime.RawExtension{}
	}
	table.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}
	return table, nil
}
