/* outer /* nested */ fn no() {} */
const GLOB: &str = r#"lib/* " fn no() {"#; // DEF constant GLOB
pub(crate) struct Parser<'a> { // DEF struct Parser
    text: &'a str,
}
impl<'a> Parser<'a> { // DEF impl Parser<'a>
    pub const unsafe fn new(text: &'a str) -> Self { // DEF function new
        let quote = '"';
        let brace = b'{';
        fn helper() {} // DEF function helper
    }
}
pub trait Show: Sized { // DEF trait Show
    type Item; // DEF type Item
    fn show(&self); // DEF function show
}
macro_rules! make { // DEF macro make
    ($name:ident) => {
        fn no() {}
    };
}
pub enum Kind { A, B } // DEF enum Kind
mod tests { // DEF module tests
    fn works() { // DEF function works
    }
}
