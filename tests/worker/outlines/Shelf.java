package org.shelf; // DEF package org.shelf

import java.util.List;

@SuppressWarnings({"unchecked", "x{"})
public abstract class Shelf<T extends Comparable<? super T>> implements Iterable<T> { // DEF class Shelf
    private static final Map<String, Integer> NAMES = new HashMap<>() {{ put("a", 1); }};
    private final Supplier<T> maker = () -> { return null; };

    static {
        register(Shelf.class);
    }

    @Deprecated
    protected Shelf(@Named("a") int size) throws IOException { // DEF method Shelf
        super(size);
        Runnable r = new Runnable() {
            @Override public void run() {}
        };
    }

    @Override
    public <K, V extends List<K>> Map<K, V>
            group(final K key, V... values) { // DEF method group
        return new HashMap<>();
    }

    abstract void close(); // DEF method close

    public enum Kind { // DEF enum Kind
        ONE("one") { @Override int more() { return 1; } },
        TWO("two");

        Kind(String name) { // DEF method Kind
        }
    }

    @interface Marked { // DEF interface Marked
        String value() default "x"; // DEF method value
    }

    record Point(int x, int y) { // DEF record Point
        Point { // DEF method Point
        }
    }

    String text = """
        class No { "quoted" /*
        """;
}
