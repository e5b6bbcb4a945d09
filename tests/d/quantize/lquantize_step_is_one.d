/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: without a step it is 1. */
BEGIN
{
	@ = lquantize(3, 0, 10);
	@ = lquantize(4, 0, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               2 |                                         0        
               3 |@@@@@@@@@@@@@@@@@@@@                     1        
               4 |@@@@@@@@@@@@@@@@@@@@                     1        
               5 |                                         0        

*/
