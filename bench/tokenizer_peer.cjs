// tokenizer_peer.cjs: how fast OpenAI's tiktoken (npm package `tiktoken`: its Rust code as WebAssembly) encodes a text, on
// one thread:  node bench/tokenizer_peer.cjs ENCODING TEXT  with ENCODING gpt2 or cl100k_base, where `npm install
// tiktoken` was run, or NODE_PATH says so. Prints MB/s (median of three) and the number of tokens.
const fs = require("fs");
const { get_encoding } = require(require.resolve("tiktoken", { paths: [process.cwd(), ...module.paths] }));

const [encoding_name, path] = process.argv.slice(2);
const bytes = fs.readFileSync(path);
const text = bytes.toString("utf8");
const encoding = get_encoding(encoding_name);
const rates = [];
let tokens = 0;
for (let round = 0; round < 3; round++) {
	const begin_ns = process.hrtime.bigint();
	tokens = encoding.encode_ordinary(text).length;
	rates.push((bytes.length * 1e3) / Number(process.hrtime.bigint() - begin_ns));
}
rates.sort((a, b) => a - b);
console.log(rates[1].toFixed(3), tokens);
