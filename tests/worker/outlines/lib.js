'use strict'
const globs = ['lib/*', "src/*"]	// DEF: none
const quote = /['"`{]/g, half = 1 / 2 / 3

function first (a) {	// DEF function first
  const text = `a ${ a.map(x => `${x} { */ `).join('}') } // `
  function inner () {}	// DEF function inner
  return a / 2 > 1 / globs.length
}

class Shelf extends Thing {	// DEF class Shelf
  #count = 0
  static made = () => new Shelf()	// DEF function made
  constructor (a) { super(a) }	// DEF method constructor
  get size () { return this.#count }	// DEF method size
  async * walk () {	// DEF method walk
    for (const each of this) {
      if (each) {
      }
    }
  }
  delete (x) {	// DEF method delete
    return call(x)
  }
}

const arrow = async (a, { b }) => {	// DEF function arrow
}
const short = a => a	// DEF function short
let named = function () {}	// DEF function named
Shelf.prototype.more = function (a) {	// DEF function more
}
module.exports = {
  first,
  key: function () {},	// DEF function key
  'quoted-key': function () {},	// DEF function quoted-key
  method (a) {	// DEF method method
  },
  value: first ? short : function () {},
}
export default function () {}
export function last () {}	// DEF function last
call(function () {
  return a
})
