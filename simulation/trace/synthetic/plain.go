package synthetic

import (
	"strconv"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

// plain is what the models have in common whose jobs ask for processors only.
type plain struct {
	*Options
	seed   seed
	people urn
	// names are those of the classes, which their jobs have as application, and as
	// queue where there are no others.
	names  []string
	cycles []*cycle
	shapes map[shaped]*trace.Shape
}

// shaped is what tells a shape from others.
type shaped struct {
	class, queue int
	user, size   int64
}

func newPlain(o *Options, names ...string) plain {
	return plain{
		Options: o, seed: seed(o.Seed), people: people(o.Users), names: names, shapes: map[shaped]*trace.Shape{},
	}
}

func (p *plain) cycle(class int) *cycle { return p.cycles[class] }

// user answers whose a submission is.
func (p *plain) user(number int64) int64 {
	draw := p.seed.of(forUser, number)
	return int64(p.people.draw(&draw))
}

// together answers how many jobs a submission has.
func (p *plain) together(number int64) int64 {
	draw := p.seed.of(forSubmission, number)
	return draw.geometric(float64(p.Together))
}

// ask gives a job its run time, and the limit and shape that go with it.
func (p *plain) ask(s *submission, number int64, run cluster.Duration, j *trace.Job) {
	j.Run = run
	j.Limit = limit(p.seed.of(forLimit, number), p.Estimates, run, float64(p.LimitFactor))
	j.Shape = p.shape(shaped{s.class, queueOf(p.Queues, j.Limit), s.user, s.size})
}

// shape answers the one shape of all jobs that are alike.
func (p *plain) shape(key shaped) *trace.Shape {
	if s := p.shapes[key]; s != nil {
		return s
	}
	s := &trace.Shape{User: "user" + strconv.FormatInt(key.user+1, 10), Application: p.names[key.class]}
	s.Queue = s.Application
	if len(p.Queues) > 0 {
		s.Queue = p.Queues[key.queue].Name
	}
	s.CPUs = key.size
	if p.HostCPUs > 0 && key.size > p.HostCPUs {
		s.Nodes = (key.size + p.HostCPUs - 1) / p.HostCPUs
		s.CPUs = (key.size + s.Nodes - 1) / s.Nodes
	}
	p.shapes[key] = s
	return s
}

// days answers how much comes on each day.
func (r Rhythm) days() [7]float64 {
	if r == Week {
		return workingDays
	}
	return allDays
}

// alike answers the run time of one of several like jobs.
func alike(draw *stream, typical, spread float64) cluster.Duration {
	return whole(draw.lognormal(typical, spread))
}
