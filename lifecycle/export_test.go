package lifecycle

import "time"

// SetCleanLimit changes how long "clean now" goes on, until the function that it returns is called.
func SetCleanLimit(d time.Duration) (restore func()) {
	before := cleanLimit
	cleanLimit = d
	return func() { cleanLimit = before }
}
