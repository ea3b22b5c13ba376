package raw // DEF package raw

const pattern = `a /* not a comment
func no() {` + // in letters
	other

const other = 1 // DEF constant other

type ( // a group
	One struct { // DEF struct One
		two struct{ x int }
	}
	Three[T any] interface { // DEF interface Three
	}
	Four = One // DEF type Four
)

type Five[K comparable] struct { // DEF struct Five
}

func (f *Five[K]) Get(key K) (v int, err error) { // DEF method Get
	r := '"'
	return
}

func Map[T any](f func(T) T) { // DEF function Map
}

var global = 1 // DEF variable global
