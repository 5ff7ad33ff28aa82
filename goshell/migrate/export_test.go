package migrate

// LockID is the advisory lock that tests hold against Up.
const LockID = lockID
