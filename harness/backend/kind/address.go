package kind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// A container that ends gives its address back, and the engine gives the lowest free one to whatever starts next, of another
// cluster for instance. Certificates and etcd's members know a node by its address, so placeholders keep it while the node is
// without power, and fill the gaps below it when it starts.

// maxPlaceholders bounds the placeholders: more than that many gaps are not left by clusters that come and go.
const maxPlaceholders = 64

// holder makes and drops containers that do nothing but have an address.
type holder interface {
	hold(ctx context.Context) (id string, at netip.Addr, err error)
	drop(ctx context.Context, id string) error
}

// addresses are those that placeholders have.
type addresses struct {
	holder
	held map[netip.Addr]string // ids
}

func newAddresses(h holder) *addresses { return &addresses{holder: h, held: map[netip.Addr]string{}} }

func highest(of []netip.Addr) netip.Addr { return slices.MaxFunc(of, netip.Addr.Compare) }

// next makes one more placeholder. It is no error that there are many already, unless there are far too many.
func (a *addresses) next(ctx context.Context) (netip.Addr, error) {
	if len(a.held) >= maxPlaceholders {
		return netip.Addr{}, fmt.Errorf("%d placeholders did not fill the gaps between the addresses of nodes", len(a.held))
	}
	id, at, err := a.hold(ctx)
	if err != nil {
		return at, fmt.Errorf("placeholder for the address of a node: %w", err)
	}
	a.held[at] = id
	return at, nil
}

// keep holds the wanted addresses and no others.
func (a *addresses) keep(ctx context.Context, wanted ...netip.Addr) error {
	if err := a.fill(ctx, wanted...); err != nil {
		return err
	}
	var errs []error
	for at := range a.held {
		if !slices.Contains(wanted, at) {
			errs = append(errs, a.release(ctx, at))
		}
	}
	return errors.Join(errs...)
}

// fill holds the wanted addresses and every free one below the highest of them.
func (a *addresses) fill(ctx context.Context, wanted ...netip.Addr) error {
	for {
		at, err := a.next(ctx)
		if err != nil {
			return err
		}
		if at.Less(highest(wanted)) {
			continue
		}
		if !slices.Contains(wanted, at) { // beyond: no gap is left
			err = a.release(ctx, at)
		}
		for _, w := range wanted {
			if _, held := a.held[w]; !held && err == nil {
				return fmt.Errorf("the address %s of a node was given to another container when the node lost its power: run the scenario while no other clusters come and go", w)
			}
		}
		if err != nil || !slices.Contains(wanted, at) {
			return err
		}
	}
}

// release drops the placeholder of an address.
func (a *addresses) release(ctx context.Context, at netip.Addr) error {
	if err := a.drop(ctx, a.held[at]); err != nil {
		return fmt.Errorf("give the address %s free: %w", at, err)
	}
	delete(a.held, at)
	return nil
}

// releaseAll drops every placeholder.
func (a *addresses) releaseAll(ctx context.Context) error {
	var errs []error
	for at := range a.held {
		errs = append(errs, a.release(ctx, at))
	}
	return errors.Join(errs...)
}
