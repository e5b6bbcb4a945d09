/* SPDX-License-Identifier: Apache-2.0 */
/* low and high may be the same; the middle row is 0 when low is 0. */
BEGIN
{
	@a = llquantize(5, 10, 0, 0, 10);
	@a = llquantize(0, 10, 0, 0, 10);
	@b = llquantize(0, 10, 2, 2, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |@@@@@@@@@@@@@@@@@@@@                     1        
               1 |                                         0        
               2 |                                         0        
               3 |                                         0        
               4 |                                         0        
               5 |@@@@@@@@@@@@@@@@@@@@                     1        
               6 |                                         0        


           value  ------------- Distribution ------------- count    
            -100 |                                         0        
     abs() < 100 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
             100 |                                         0        

*/
