/* SPDX-License-Identifier: Apache-2.0 */
/* With -xempty a file without a clause is compiled. */
/* flags: -q -e -xempty */

