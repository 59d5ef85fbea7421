package providers

import (
	"errors"
	"fmt"

	"xce.internal/elastic/cluster"
)

// roster is the instances of one answer: no host stands in it twice.
type roster map[string]bool

func newRoster() roster { return roster{} }

// add checks what was granted at a place: of hosts each as an instance, of tokens none.
func (r roster) add(place string, hosts bool, units int64, instances []Instance) error {
	switch {
	case !hosts && len(instances) > 0:
		return fmt.Errorf("at %s/instances: there are %d, but a resource was asked for: instances are of hosts only", place, len(instances))
	case hosts && int64(len(instances)) != units:
		return fmt.Errorf("at %s/instances: there are %d of %d hosts: give one instance for each host", place, len(instances), units)
	}
	for i, instance := range instances {
		if r[instance.ID] {
			return fmt.Errorf("at %s/instances/%d: %q stands there twice: give each host an id of its own", place, i, instance.ID)
		}
		r[instance.ID] = true
	}
	return nil
}

func oneRequestPerInstance(requests []RequestState) error {
	all := newRoster()
	for i, request := range requests {
		if err := all.add(fmt.Sprintf("/requests/%d", i), len(request.Instances) > 0, request.Granted, request.Instances); err != nil {
			return err
		}
	}
	return nil
}

func oneGrantPerInstance(grants []Grant) error {
	all := newRoster()
	for i, grant := range grants {
		if err := all.add(fmt.Sprintf("/grants/%d", i), grant.Template != "", grant.Units, grant.Instances); err != nil {
			return err
		}
	}
	return nil
}

// soundTemplates holds templates to what the cluster can place jobs by.
func soundTemplates(d Description) error {
	quotas := make(map[string]bool, len(d.Quotas))
	for _, quota := range d.Quotas {
		quotas[quota.Name] = true
	}
	faults := []error{once("templates", d.Templates, func(t Template) string { return t.Template })}
	for i, template := range d.Templates {
		place := fmt.Sprintf("/templates/%d/", i)
		for j, name := range template.Quotas {
			if !quotas[name] {
				faults = append(faults, fmt.Errorf("at %squotas/%d: there is no quota %q: describe it under quotas", place, j, name))
			}
		}
		if err := template.Capacity().Validate(place).Err(); err != nil {
			faults = append(faults, fmt.Errorf("at %w", err))
		}
	}
	return errors.Join(faults...)
}

// Capacity is what a host of the template has for jobs.
func (t Template) Capacity() cluster.Capacity {
	return cluster.Capacity{
		CPUs: t.CPUs, MemoryMB: t.MemoryMB, Countables: t.Countables, Features: t.Features, Attributes: t.Attributes,
	}
}
