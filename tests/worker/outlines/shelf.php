<html> function no() { /* </html>
<?php
namespace App\Shelf; // DEF namespace App\Shelf

$glob = 'lib/*'; # function no() {
$text = <<<HTML
  function no() { /*
  HTML;
#[Attribute]
final class Shelf extends Base implements Countable // DEF class Shelf
{
    use Helps;
    const A = "class No {";

    public static function &of(array $x): static // DEF function of
    {
        return array_map(function ($a) { return fn($b) => $b; }, $x);
    }

    abstract protected function isClosed(): bool; // DEF function isClosed

    public function list() {} // DEF function list
}
trait Helps {} // DEF trait Helps
enum Kind: string {} // DEF enum Kind
interface Named {} // DEF interface Named
if (!function_exists('help')) {
    function help() {} // DEF function help
}
?>
class No {
