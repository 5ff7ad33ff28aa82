// The server of a peer for Node.js: node server.js KIND POSTGRES REDIS. It ends with its standard input.
'use strict';
const express = require('express');
const pg = require('pg');

const [kind, postgres, redis] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: postgres, max: 16 });
const answer = process.env.ANSWER;
let runs = 0;

// handle is the effect, and what a request asks for beyond it.
async function handle(req) {
  await pool.query({
    name: 'insert', text: 'insert into effect (id, amount) values ($1, 1250)', values: [req.get('Idempotency-Key')],
  });
  runs++;
  if (req.get('X-Slow')) await new Promise((resolve) => setTimeout(resolve, 20));
  if (req.get('X-Kill')) process.kill(process.pid, 'SIGKILL');
}

const peers = {
  // @node-idempotency/core, whose repeats wait for the first run.
  async core(app) {
    const { Idempotency } = require('@node-idempotency/core');
    const { RedisStorageAdapter } = require('@node-idempotency/storage-adapter-redis');
    const storage = new RedisStorageAdapter({ url: `redis://${redis}` });
    await storage.connect();
    const idempotency = new Idempotency(storage, {
      inProgressStrategy: { wait: true, pollingIntervalMs: 100, maxWaitMs: 2000 },
    });
    app.post('/payments', async (req, res) => {
      const request = { headers: req.headers, path: req.path, body: req.body, method: req.method };
      try {
        const stored = await idempotency.onRequest(request);
        if (stored) return res.status(stored.additional.status).type('json').send(stored.body);
        await handle(req);
        await idempotency.onResponse(request, { body: answer, additional: { status: 201 } });
        return res.status(201).type('json').send(answer);
      } catch (err) {
        return res.status(err.code === 'REQUEST_IN_PROGRESS' ? 409 : 500).send(String(err));
      }
    });
  },

  async express(app) {
    const { idempotency, getSharedIdempotencyService } = require('express-idempotency');
    const RedisAdapter = require('express-idempotency-redis-adapter').default;
    const dataAdapter = new RedisAdapter({ connectionConfig: { url: `redis://${redis}` } });
    await dataAdapter.connect();
    app.use(idempotency({ dataAdapter }));
    app.post('/payments', async (req, res, next) => {
      if (getSharedIdempotencyService().isHit(req)) return;
      try {
        await handle(req);
        res.status(201).type('json').send(answer);
      } catch (err) {
        next(err);
      }
    });
    app.use((err, req, res, next) => {
      if (!res.headersSent) res.status(res.statusCode === 409 ? 409 : 500).send(String(err));
    });
  },
};

async function main() {
  const app = express();
  app.get('/runs', (req, res) => res.send(String(runs)));
  app.use(express.json());
  await peers[kind](app);
  const server = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
  // Or it hangs up on a connection that was idle between two rounds, just when a request comes.
  server.keepAliveTimeout = 3_600_000;
  server.headersTimeout = server.requestTimeout = 0;
  process.stdin.on('end', () => process.exit(0)).resume();
}

main().catch((err) => { console.error(err); process.exit(1); });
