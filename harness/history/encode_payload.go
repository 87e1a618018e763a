package history

import (
	"strconv"

	"github.com/kmsharness/kmsharness/contract"
)

func (w *encoder) call(c *Call) error {
	w.raw(`{"node":`).string(c.Node).raw(`,"keyID":`).string(c.KeyID).raw(`,"method":`).string(c.Method).optional(`,"uid":`, c.UID)
	if err := w.raw(`,"began":`).time(c.Began); err != nil {
		return err
	}
	if err := w.raw(`,"ended":`).time(c.Ended); err != nil {
		return err
	}
	w.raw(`,"took":`).int(int64(c.Took)).raw(`,"outcome":`).string(c.Outcome).raw(`,"code":`).string(c.Code)
	w.optional(`,"text":`, c.Text).optional(`,"healthz":`, c.Healthz).optional(`,"version":`, c.Version).optional(`,"kekID":`, c.KEKID)
	w.optional(`,"askedKEKID":`, c.AskedKEKID).optional(`,"dekSource":`, c.DEKSource)
	w.optionalInt(`,"healthzBytes":`, c.HealthzBytes).optionalInt(`,"kekIDBytes":`, c.KEKIDBytes)
	if len(c.Faults) > 0 {
		w.raw(`,"faults":`).list(c.Faults)
	}
	w.raw("}")
	return nil
}

func (w *encoder) request(r *Request) error {
	w.raw(`{"auditID":`).string(r.AuditID).raw(`,"apiServer":`).string(r.APIServer).raw(`,"user":`).string(r.User)
	w.optional(`,"userAgent":`, r.UserAgent).raw(`,"verb":`).string(r.Verb).raw(`,"resource":`).string(r.Resource)
	w.optional(`,"subresource":`, r.Subresource).optional(`,"namespace":`, r.Namespace).optional(`,"name":`, r.Name)
	w.optional(`,"fieldManager":`, r.FieldManager)
	if r.Force {
		w.raw(`,"force":true`)
	}
	w.optional(`,"contentType":`, r.ContentType).raw(`,"code":`).int(int64(r.Code))
	if err := w.raw(`,"received":`).time(r.Received); err != nil {
		return err
	}
	if err := w.raw(`,"completed":`).time(r.Completed); err != nil {
		return err
	}
	if len(r.Body) > 0 {
		if err := w.raw(`,"body":`).document(r.Body); err != nil {
			return err
		}
	}
	w.optional(`,"message":`, r.Message).optional(`,"reason":`, r.Reason)
	if len(r.Causes) > 0 {
		w.raw(`,"causes":[`)
		for i := range r.Causes {
			w.raw(separator(i, "")).cause(&r.Causes[i])
		}
		w.raw("]")
	}
	w.optional(`,"resourceVersion":`, r.ResourceVersion).raw("}")
	return nil
}

func (w *encoder) cause(c *Cause) {
	w.raw(`{"reason":`).string(c.Reason).raw(`,"message":`).string(c.Message).raw(`,"field":`).string(c.Field).raw("}")
}

func (w *encoder) object(o *Object) error {
	w.raw(`{"resource":`).string(o.Resource).raw(`,"name":`).string(o.Name).raw(`,"resourceVersion":`).string(o.ResourceVersion)
	if o.Deleted {
		w.raw(`,"deleted":true`)
	}
	if len(o.Conditions) > 0 {
		w.raw(`,"conditions":[`)
		for i := range o.Conditions {
			w.raw(separator(i, "")).condition(&o.Conditions[i])
		}
		w.raw("]")
	}
	if len(o.HealthReports) > 0 {
		w.raw(`,"healthReports":[`)
		for i := range o.HealthReports {
			w.raw(separator(i, "")).report(&o.HealthReports[i])
		}
		w.raw("]")
	}
	if len(o.Owners) > 0 {
		w.raw(`,"owners":`).ownersOf(o.Owners)
	}
	w.raw("}")
	return nil
}

func (w *encoder) condition(c *Condition) {
	w.raw(`{"type":`).string(c.Type).raw(`,"status":`).string(c.Status).optional(`,"reason":`, c.Reason)
	w.optional(`,"message":`, c.Message).optional(`,"lastTransitionTime":`, c.LastTransitionTime).raw("}")
}

func (w *encoder) report(r *contract.TypedReport) {
	w.raw(`{"nodeName":`).string(r.NodeName).raw(`,"keyID":`).string(r.KeyID).raw(`,"status":`).string(r.Status)
	w.raw(`,"lastCheckedTime":`).string(r.LastCheckedTime).raw(`,"remoteKeyID":`).string(r.RemoteKeyID).optional(`,"detail":`, r.Detail).raw("}")
}

func (w *encoder) envelope(e *Envelope) {
	w.raw(`{"hop":`).string(e.Hop).raw(`,"op":`).string(e.Op).raw(`,"uid":`).string(e.UID).optional(`,"node":`, e.Node)
	w.optional(`,"keyID":`, e.KeyID).optional(`,"kekID":`, e.KEKID).optional(`,"object":`, e.Object).raw(`,"ok":`).raw(strconv.FormatBool(e.OK)).optional(`,"error":`, e.Error)
	w.optionalInt(`,"took":`, int(e.Took))
	if e.For != (EnvelopeRequest{}) {
		w.raw(`,"for":`).envelopeRequest(&e.For)
	}
	w.raw("}")
}

func (w *encoder) envelopeRequest(r *EnvelopeRequest) {
	first := true
	for _, f := range [...]struct{ name, value string }{{"verb", r.Verb}, {"group", r.Group}, {"version", r.Version}, {"resource", r.Resource},
		{"subresource", r.Subresource}, {"namespace", r.Namespace}, {"name", r.Name}} {
		if f.value == "" {
			continue
		}
		w.raw(map[bool]string{true: `{"`, false: `,"`}[first]).raw(f.name).raw(`":`).string(f.value)
		first = false
	}
	w.raw("}")
}

func (w *encoder) process(p *Process) {
	w.raw(`{"role":`).string(p.Role).optional(`,"node":`, p.Node).optional(`,"keyID":`, p.KeyID).optionalInt(`,"instance":`, p.Instance)
	w.optional(`,"apiServer":`, p.APIServer).optionalInt(`,"pid":`, p.PID).raw(`,"state":`).string(p.State).optional(`,"detail":`, p.Detail).raw("}")
}

func (w *encoder) data(d *Data) {
	w.raw(`{"op":`).string(d.Op).raw(`,"object":`).string(d.Object).optional(`,"digest":`, d.Digest).raw(`,"ok":`).raw(strconv.FormatBool(d.OK))
	w.optional(`,"error":`, d.Error).optional(`,"node":`, d.Node).optional(`,"provider":`, d.Provider).optional(`,"kekID":`, d.KEKID)
	w.optional(`,"dekSource":`, d.DEKSource).optional(`,"want":`, d.Want).raw("}")
}

func (w *encoder) metrics(m *Metrics) {
	w.raw(`{"node":`).string(m.Node).raw(`,"plugins":`)
	if m.Plugins == nil {
		w.raw("null}")
		return
	}
	w.raw("[")
	for i := range m.Plugins {
		w.raw(separator(i, "")).plugin(&m.Plugins[i])
	}
	w.raw("]}")
}

func (w *encoder) plugin(p *PluginMetrics) {
	w.raw(`{"keyID":`).string(p.KeyID)
	if p.Healthy != nil {
		w.raw(`,"healthy":`).raw(strconv.FormatBool(*p.Healthy))
	}
	w.raw(`,"calls":`)
	w.b = strconv.AppendUint(w.b, p.Calls, 10)
	w.raw(`,"errors":`)
	w.b = strconv.AppendUint(w.b, p.Errors, 10)
	w.raw(`,"seconds":`).float(p.Seconds).raw("}")
}
