import { type Other, run } from 'lib/*'
export interface Props<T> {	// DEF interface Props
  name: string
  onClick: (event: Event) => void
  render(): string;	// DEF method render
}
type Kind = 'a' | 'b'	// DEF type Kind
export type Fn<T> = { call: (a: T) => void }	// DEF type Fn
enum Color { Red }	// DEF enum Color
declare namespace tools {	// DEF namespace tools
}
export abstract class Store<T extends object = {}> implements Props<T> {	// DEF class Store
  private items: Map<string, T> = new Map()
  handler: (a: number) => string = (a) => String(a)	// DEF function handler
  constructor(private readonly name: string) {	// DEF method constructor
  }
  public async load<K>(key: K, ...rest: string[]): Promise<Map<K, T>> {	// DEF method load
    if (key) {
      return other(key)
    }
  }
  abstract close(): void	// DEF method close
}
export const make: Fn<string> = (a) => {	// DEF function make
}
export function over(a: string): string	// DEF function over
export function over(a: any): any {	// DEF function over
  const url = `https://${a}/*`
  return a.type satisfies string
}
const options = {
  cb: (a: number): void => {},	// DEF function cb
}
