#!/usr/bin/env python3
"""How much ds4-server's clients feel of each other: one reads an answer token by token while the prompt of another is read.

    bench/fairness.py SERVER MODEL [--tokens N] [--rounds N] [--server-options "..."]

Starts SERVER (build/release/ds4-server) with MODEL, and in every round measures alone and together: the gaps between the
tokens of the answer, and the seconds that a prompt of about N tokens (3000) takes to its first token. Prints the medians of
the rounds and two comparisons:

    largest gap while the prompt is read    against 4 times the gap alone, and 50 ms
    the prompt beside the answer            against 1.25 times the prompt alone, and the time that the answer's tokens
                                            alone would have taken

The answer is drawn at a temperature at which the model talks nonsense and does not stop; its seed is tried out first. Every
prompt is another one from its first token on. Exit status: 0; 1 if a comparison fails; 2 if nothing could be measured."""
import argparse, http.client, json, random, re, shlex, statistics, subprocess, sys, threading, time

GAP_TIMES, GAP_MORE, PREFILL_TIMES = 4, 0.050, 1.25


class Server:
    def __init__(self, program, model, options):
        command = [program, '-m', model, '--port', '0', '--ctx', '8192', '--sessions', '2', *shlex.split(options)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stderr:
            if found := re.search(r'listening on http://127\.0\.0\.1:(\d+)', line):
                self.port = int(found.group(1))
                break
        if not self.port:
            sys.exit('fairness: the server did not start')
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def post(self, body):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=600)
        connection.request('POST', '/v1/chat/completions', json.dumps(body), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        if answer.status != 200:
            sys.exit(f'fairness: {answer.status}: {answer.read().decode()}')
        return answer

    def end(self):
        self.process.terminate()
        self.process.wait()


class Talk(threading.Thread):
    """An answer; the times at which its pieces came."""

    def __init__(self, server, seed, most):
        super().__init__()
        self.server, self.seed, self.most, self.times, self.leave = server, seed, most, [], False

    def run(self):
        answer = self.server.post({
            'messages': [{'role': 'user', 'content': 'Talk.'}], 'thinking': False, 'stream': True, 'temperature': 100,
            'min_p': 0, 'seed': self.seed, 'max_tokens': self.most})
        for line in answer:
            if line.startswith(b'data: {') and b'"content"' in line:
                self.times.append(time.perf_counter())
            if self.leave:
                break
        answer.close()

    def wait_for(self, n):
        while len(self.times) < n and self.is_alive():
            time.sleep(0.002)


def gaps(times, begin=0, end=float('inf')):
    return [b - a for a, b in zip(times, times[1:]) if b >= begin and a <= end]


def read_prompt(server, words):
    """(seconds, tokens) of a prompt nobody has seen"""
    text = f'{random.random()} ' + ' '.join(random.choice(['fox', 'lamp', 'river', 'kite', 'garden']) for _ in range(words))
    begun = time.perf_counter()
    answer = json.loads(server.post({
        'messages': [{'role': 'system', 'content': text}, {'role': 'user', 'content': 'Hello!'}], 'thinking': False,
        'max_tokens': 1, 'temperature': 0}).read())
    return time.perf_counter() - begun, answer['usage']['prompt_tokens']


def find_seed(server, most):
    for seed in range(1, 60):
        talk = Talk(server, seed, most)
        talk.run()
        if len(talk.times) > most * 0.8:
            return seed
    sys.exit('fairness: the model ends all its answers')


def one_round(server, seed, most, words):
    talk = Talk(server, seed, most)
    talk.run()
    alone = gaps(talk.times)
    prompt_alone, tokens = read_prompt(server, words)
    talk = Talk(server, seed, most)
    talk.start()
    talk.wait_for(30)
    begin = time.perf_counter()
    prompt_beside, _ = read_prompt(server, words)
    end = time.perf_counter()
    if not talk.is_alive():
        sys.exit('fairness: the answer was over ahead of the prompt; try fewer --tokens')
    talk.leave = True
    talk.join()
    during = gaps(talk.times, begin, end)
    return {'tokens': tokens, 'gap': statistics.median(alone), 'gap_most': max(alone), 'during': len(during),
            'during_median': statistics.median(during), 'during_most': max(during), 'prompt': prompt_alone,
            'beside': prompt_beside, 'limit': PREFILL_TIMES * prompt_alone + len(during) * statistics.median(alone)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('server')
    parser.add_argument('model')
    parser.add_argument('--tokens', type=int, default=3000)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--answer', type=int, default=4000, help='tokens of the answer')
    parser.add_argument('--server-options', default='')
    o = parser.parse_args()
    server = Server(o.server, o.model, o.server_options)
    try:
        seed = find_seed(server, o.answer)
        a, b = read_prompt(server, 100)[1], read_prompt(server, 600)[1]
        words = int(100 + (o.tokens - a) * 500 / (b - a))
        rounds = []
        for _ in range(o.rounds):
            rounds.append(one_round(server, seed, o.answer, words))
            print('  '.join(f'{k} {v if isinstance(v, int) else round(v * 1000, 2)}' for k, v in rounds[-1].items()))
    finally:
        server.end()
    m = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
    gap_limit = GAP_TIMES * m['gap'] + GAP_MORE
    print(f'prompt of {m["tokens"]} tokens, medians of {o.rounds} rounds')
    print(f'largest gap: {m["during_most"] * 1e3:.1f} ms, alone {m["gap"] * 1e3:.2f} ms (largest {m["gap_most"] * 1e3:.1f}); '
          f'limit {gap_limit * 1e3:.1f} ms')
    print(f'prompt: {m["beside"] * 1e3:.0f} ms beside {m["during"]} tokens of the answer, alone {m["prompt"] * 1e3:.0f} ms; '
          f'limit {m["limit"] * 1e3:.0f} ms')
    sys.exit(m['during_most'] > gap_limit or m['beside'] > m['limit'])


main()
